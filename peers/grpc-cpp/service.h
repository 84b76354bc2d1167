#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

// One variant of BenchmarkService.
class Service {
 public:
  virtual ~Service() = default;

  // Before the server is built.
  virtual void Register(grpc::ServerBuilder& builder) = 0;

  // When the server has been started.
  virtual void Start() = 0;
};

// Reactors that gRPC's own threads run.
std::unique_ptr<Service> MakeCallbackService();

// So many completion queues, each with its own thread.
std::unique_ptr<Service> MakeCompletionQueueService(size_t threads);
