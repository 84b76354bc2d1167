#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>

#include "common/run.h"
#include "continuation.h"
#include "grpc/testing/benchmark_service.grpc.pb.h"
#include "messages.h"

// State shared by the workers of a thread, which drives them all from the queue. By default a run has one thread,
// because the completion queue costs less than the callback interface. On one CPU, an empty unary call with 64 in
// flight takes 35 µs of CPU time with the queue, 36 µs with callbacks and 44 µs with reactors; with 256 in flight 26,
// 30 and 38 µs.
struct Bench {
  const LoadOptions& options;
  Run run;
  grpc::CompletionQueue queue{};
  // The request of all calls of the run.
  grpc::testing::SimpleRequest request{};
  // Workers that have not finished.
  size_t active = 0;
};

// Makes one call at a time until the run is over.
class Worker {
 public:
  Worker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub) : bench_(bench), stub_(stub) {}
  virtual ~Worker() = default;

  // Starts the first call.
  void BeginUnlessOver();

  // Cancels the call if it waits too long for an event.
  void CancelIfStuck(uint64_t now_ns);

 protected:
  virtual void Begin() = 0;

  // Called when a call has ended. Starts the next, or finishes this worker when the run is over.
  void Repeat();

  // Called when the run has no more calls.
  void Retire() { --bench_.active; }

  // Starts waiting for the next message.
  void WaitsSince(uint64_t now_ns) { waits_since_ns_ = now_ns + 1; }

  // Creates a new call's context. The remains of the previous call must be gone.
  grpc::ClientContext* NewContext() { return &context_.emplace(); }
  grpc::ClientContext& context() { return *context_; }

  // Called when the call has failed, or the wrong response came (OK). Counts that, pauses, and continues.
  void Fail(const grpc::Status& status);

  Run& run() { return bench_.run; }
  int size() const { return bench_.options.size; }

  Bench& bench_;
  grpc::testing::BenchmarkService::Stub& stub_;

 private:
  void AfterPause(bool ok);

  std::optional<grpc::ClientContext> context_;
  // Start of waiting by the clock, plus 1; 0 if not waiting.
  uint64_t waits_since_ns_ = 0;
  bool timed_out_ = false;
  std::optional<grpc::Alarm> alarm_;
  Then<Worker, &Worker::AfterPause> after_pause_{this};
};

// Returns the time `ns` from now, for an alarm.
gpr_timespec FromNow(uint64_t ns);

inline grpc::Status EndedEarly() { return {grpc::StatusCode::DATA_LOSS, "the server ended the stream before its time"}; }
inline grpc::Status Wrong(const std::string& what) { return {grpc::StatusCode::DATA_LOSS, what}; }

std::unique_ptr<Worker> MakeUnaryWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
std::unique_ptr<Worker> MakeClientStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
std::unique_ptr<Worker> MakeServerStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
std::unique_ptr<Worker> MakeBidiStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub);
