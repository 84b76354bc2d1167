#pragma once

#include <grpcpp/grpcpp.h>

// Settings that make gRPC C++ fast.

void ApplySettings(grpc::ServerBuilder& builder);
void ApplySettings(grpc::ChannelArguments& arguments);

// Prints `settings`: the settings and the defaults that matter, a line each with SIDE, NAME, VALUE and WHY.
void PrintSettings();
