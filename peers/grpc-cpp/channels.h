#pragma once

#include <memory>
#include <vector>

#include "grpc/testing/benchmark_service.grpc.pb.h"
#include "load.h"

// Over which the workers are spread, one after the other.
using Stubs = std::vector<std::unique_ptr<grpc::testing::BenchmarkService::Stub>>;

// Connects as the variant says:
// - own: a channel for each connection that is asked for, with a connection of its own;
// - distinct: as many channels, each with an argument of its own, which by itself means nothing to gRPC; so each has a
//   connection of its own;
// - shared: as many channels, made as one makes channels. Channels of equal arguments share their connection;
// - one: one channel, however many connections are asked for.
// Throws when there is no server.
Stubs Connect(const LoadOptions& options);

// One unary call of the run's size. Throws when it fails.
void FirstCall(const LoadOptions& options, grpc::testing::BenchmarkService::Stub& stub);
