#pragma once

#include <grpcpp/grpcpp.h>

// What gRPC C++ is told so that it is fast.

void ApplySettings(grpc::ServerBuilder& builder);
void ApplySettings(grpc::ChannelArguments& arguments);
