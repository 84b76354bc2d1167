#pragma once

#include <QtCore/QUrl>

#include <memory>
#include <string>
#include <vector>

#include "common/load_options.h"
#include "grpc/testing/benchmark_service_client.grpc.qpb.h"

// Each has its own channel, which in Qt GRPC is a connection. The workers are spread over them in turn.
using Clients = std::vector<std::unique_ptr<grpc::testing::BenchmarkService::Client>>;

// Returns `target` as a URL for Qt GRPC. Throws Misuse if it is not supported.
QUrl Address(const std::string& target);

// Connects, and makes a unary call of the run's size on each connection, because a channel does not tell otherwise that
// it is connected. Throws if one fails.
Clients Connect(const LoadOptions& options);
