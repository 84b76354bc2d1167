#pragma once

#include <grpcpp/grpcpp.h>

// What gRPC C++ is told so that it is fast, the same for the client and the server. Each line says why.

void ApplySettings(grpc::ServerBuilder& builder);
void ApplySettings(grpc::ChannelArguments& arguments);
