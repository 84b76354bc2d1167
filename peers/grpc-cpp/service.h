#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

// A variant of BenchmarkService.
class Service {
 public:
  virtual ~Service() = default;

  // Called before the server is built.
  virtual void Register(grpc::ServerBuilder& builder) = 0;

  // Called after the server has started.
  virtual void Start() = 0;
};

// Uses reactors run by gRPC's own threads.
std::unique_ptr<Service> MakeCallbackService();

// Uses `threads` completion queues, each with its own thread.
std::unique_ptr<Service> MakeCompletionQueueService(size_t threads);
