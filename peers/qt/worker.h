#pragma once

#include <QtCore/QEventLoop>
#include <QtCore/QObject>
#include <QtCore/QTimer>
#include <QtGrpc/QGrpcOperation>
#include <QtGrpc/QGrpcStatus>

#include <memory>
#include <string>

#include "common/run.h"
#include "grpc/testing/benchmark_service_client.grpc.qpb.h"

// State shared by the workers. They all run on the event loop's thread, as do their channels.
struct Bench {
  const LoadOptions& options;
  Run run;
  // The request of all calls of the run.
  const grpc::testing::SimpleRequest request{};
  // Runs until the run is over.
  QEventLoop loop{};
  // Workers that have not finished.
  size_t active = 0;
};

// Makes one call at a time until the run is over.
class Worker : public QObject {
 public:
  Worker(Bench& bench, grpc::testing::BenchmarkService::Client& client) : bench_(bench), client_(client) {
    pause_timer_.setSingleShot(true);
    pause_timer_.callOnTimeout(this, [this] { BeginUnlessOver(); });
  }

  // Starts the first call.
  void BeginUnlessOver();

  // Cancels the call if it waits too long for an event.
  void CancelIfStuck(uint64_t now_ns);

 protected:
  virtual void Begin() = 0;

  // Called when the call has ended with this status; `call()` still exists.
  virtual void Finished(const QGrpcStatus& status) = 0;

  // Makes `call` the current call.
  void Follow(QGrpcOperation* call);

  // Called when a call has ended. Starts the next, or finishes this worker when the run is over.
  void Repeat();

  // Called when the run has no more calls.
  void Retire();

  // Starts waiting for the next message.
  void WaitsSince(uint64_t now_ns) { waits_since_ns_ = now_ns + 1; }

  // Cancels the call, which then does not report its end.
  void Cancel();

  // Called when the call has failed, or the wrong response came (OK). Counts that, pauses, and continues.
  void Fail(const QGrpcStatus& status) { Fail(static_cast<int>(status.code()), status.message().toStdString()); }
  void FailAsWrong(const std::string& what) { Fail(kDataLoss, what); }
  void FailAsEndedEarly() { FailAsWrong("the server ended the stream before its time"); }

  Run& run() { return bench_.run; }
  int size() const { return bench_.options.size; }
  const QGrpcOperation& call() const { return *call_; }

  Bench& bench_;
  grpc::testing::BenchmarkService::Client& client_;

 private:
  static constexpr int kDataLoss = static_cast<int>(QtGrpc::StatusCode::DataLoss);

  void Fail(int code, const std::string& message);

  // Deletes the call later, because it may be emitting a signal.
  struct Later {
    void operator()(QGrpcOperation* call) const { call->deleteLater(); }
  };
  std::unique_ptr<QGrpcOperation, Later> call_;
  // Start of waiting by the clock, plus 1; 0 if not waiting.
  uint64_t waits_since_ns_ = 0;
  QTimer pause_timer_;
};

std::unique_ptr<Worker> MakeUnaryWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
std::unique_ptr<Worker> MakeClientStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
std::unique_ptr<Worker> MakeServerStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
std::unique_ptr<Worker> MakeBidiStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
