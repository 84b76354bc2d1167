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

// What the workers share. All of them are on the thread of the event loop, as their channels are.
struct Bench {
  const LoadOptions& options;
  Run run;
  // The requests of the run are this one.
  const grpc::testing::SimpleRequest request{};
  // Until the run is over.
  QEventLoop loop{};
  // Workers that are not gone.
  size_t active = 0;
};

// Makes call after call until the run is over, one at a time.
class Worker : public QObject {
 public:
  Worker(Bench& bench, grpc::testing::BenchmarkService::Client& client) : bench_(bench), client_(client) {
    rest_.setSingleShot(true);
    rest_.callOnTimeout(this, [this] { BeginUnlessOver(); });
  }

  // Begins the first call.
  void BeginUnlessOver();

  // Cancels the call when what it waits for takes too long.
  void CancelIfStuck(uint64_t now_ns);

 protected:
  // Begins a call.
  virtual void Begin() = 0;

  // The call has ended with this status; `call()` is still there.
  virtual void Finished(const QGrpcStatus& status) = 0;

  // From now on this is the call.
  void Follow(QGrpcOperation* call);

  // A call has ended. Begins the next; when the run is over, this worker is gone.
  void Repeat();

  // The run has no more calls.
  void Gone();

  // From now on the next message is waited for.
  void WaitsSince(uint64_t now_ns) { waits_since_ns_ = now_ns + 1; }

  // This side ends the call. It finishes no more.
  void Cancel();

  // The call has failed, or brought something else than was asked for (OK). Counts that, rests, and goes on.
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

  // Lets go of the call, which may be in the midst of a signal.
  struct Later {
    void operator()(QGrpcOperation* call) const { call->deleteLater(); }
  };
  std::unique_ptr<QGrpcOperation, Later> call_;
  // The clock when waiting began, plus 1; 0: for nothing.
  uint64_t waits_since_ns_ = 0;
  QTimer rest_;
};

std::unique_ptr<Worker> MakeUnaryWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
std::unique_ptr<Worker> MakeClientStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
std::unique_ptr<Worker> MakeServerStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
std::unique_ptr<Worker> MakeBidiStreamWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client);
