#pragma once

#include <grpcpp/grpcpp.h>

// What gRPC C++ is told so that it is fast.

void ApplySettings(grpc::ServerBuilder& builder);
void ApplySettings(grpc::ChannelArguments& arguments);

// Answers `settings`: what gRPC is told, and its defaults that matter; a line each of SIDE, NAME, VALUE and WHY.
void PrintSettings();
