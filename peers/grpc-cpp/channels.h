#pragma once

#include <memory>
#include <vector>

#include "grpc/testing/benchmark_service.grpc.pb.h"
#include "load.h"

// The workers are spread over these in turn.
using Stubs = std::vector<std::unique_ptr<grpc::testing::BenchmarkService::Stub>>;

// Connects as the variant says:
//
// - own: a channel per connection, each with its own connection;
// - distinct: as many channels, each with a distinct argument that gRPC ignores, and so each with its own connection;
// - shared: as many channels, created as usual. Channels with equal arguments share their connection;
// - one: one channel, however many connections are requested.
//
// Throws if there is no server.
Stubs Connect(const LoadOptions& options);

// Makes one unary call of the run's size. Throws if it fails.
void FirstCall(const LoadOptions& options, grpc::testing::BenchmarkService::Stub& stub);
