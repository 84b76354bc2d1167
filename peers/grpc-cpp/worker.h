#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "common/run.h"
#include "continuation.h"
#include "grpc/testing/benchmark_service.grpc.pb.h"
#include "messages.h"

// What the workers of a thread share. It takes from the queue and drives all of them; by default a run has one thread:
// the completion queue costs less than the callback interface here. On one processor, 64 empty unary calls in flight
// take 35 µs of processor time a call with it, 36 µs with callbacks and 44 µs with reactors; 256 take 26, 30 and 38 µs.
struct Bench {
  const LoadOptions& options;
  Run run;
  grpc::CompletionQueue queue{};
  // The requests of the run are this one.
  grpc::testing::SimpleRequest request{};
  // Workers that are not gone.
  size_t active = 0;
};

// Makes call after call until the run is over, one at a time.
class Worker {
 public:
  Worker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub) : bench_(bench), stub_(stub) {}
  virtual ~Worker() = default;

  // Begins the first call.
  void BeginUnlessOver();

  // Cancels the call when what it waits for takes too long.
  void CancelIfStuck(uint64_t now_ns);

 protected:
  // Begins a call.
  virtual void Begin() = 0;

  // A call has ended. Begins the next; when the run is over, this worker is gone.
  void Repeat();

  // The run has no more calls.
  void Gone() { --bench_.active; }

  // From now on the next message is waited for.
  void WaitsSince(uint64_t now_ns) { waits_since_ns_ = now_ns + 1; }

  // A new call's context. What is left of the call before must be gone.
  grpc::ClientContext* NewContext() { return &context_.emplace(); }
  grpc::ClientContext& context() { return *context_; }

  // The call has failed, or brought something else than was asked for (OK). Counts that, rests, and goes on.
  void Fail(const grpc::Status& status);

  Run& run() { return bench_.run; }
  int size() const { return bench_.options.size; }

  Bench& bench_;
  grpc::testing::BenchmarkService::Stub& stub_;

 private:
  void Rested(bool ok);

  std::optional<grpc::ClientContext> context_;
  // The clock when waiting began, plus 1; 0: for nothing.
  uint64_t waits_since_ns_ = 0;
  bool timed_out_ = false;
  std::optional<grpc::Alarm> alarm_;
  Then<Worker, &Worker::Rested> rested_{this};
};

// So long from now, for an alarm.
gpr_timespec FromNow(uint64_t ns);

inline grpc::Status EndedEarly() { return {grpc::StatusCode::DATA_LOSS, "the server ended the stream before its time"}; }
inline grpc::Status Wrong(const std::string& what) { return {grpc::StatusCode::DATA_LOSS, what}; }

std::unique_ptr<Worker> MakeUnaryWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
std::unique_ptr<Worker> MakeClientStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
std::unique_ptr<Worker> MakeServerStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
std::unique_ptr<Worker> MakeBidiStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
