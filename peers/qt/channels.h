#pragma once

#include <QtCore/QUrl>

#include <memory>
#include <string>
#include <vector>

#include "common/load_options.h"
#include "grpc/testing/benchmark_service_client.grpc.qpb.h"

// Each with a channel of its own, over which the workers are spread, one after the other. A channel of Qt GRPC is a
// connection.
using Clients = std::vector<std::unique_ptr<grpc::testing::BenchmarkService::Client>>;

// What Qt GRPC calls `target`. Throws Misuse for one that it does not reach.
QUrl Address(const std::string& target);

// Connects, and makes a unary call of the run's size on each connection: a channel has no other way to say that it is
// connected. Throws when one fails.
Clients Connect(const LoadOptions& options);
