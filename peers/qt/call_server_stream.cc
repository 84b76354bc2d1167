#include <QtGrpc/QGrpcServerStream>

#include "common/stride.h"
#include "messages.h"
#include "worker.h"

namespace {

using grpc::testing::BenchmarkService::Client;

// Runs one stream of responses at a time, cancelled when the run is over.
class ServerStreamWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  void Begin() override {
    received_ = 0;
    is_over_ = false;
    started_ns_ = run().NowNs();
    start_ = run().Begin(started_ns_, stride_);
    if (start_.count == 0) return Retire();
    QGrpcServerStream* stream = client_.StreamingFromServer(bench_.request).release();
    Follow(stream);
    connect(stream, &QGrpcServerStream::messageReceived, this, [this] { Received(); });
  }

  void Received() {
    // Arrived before the stream was cancelled.
    if (is_over_) return;
    if (const std::string wrong = WrongResponse(call(), size()); !wrong.empty()) {
      EndStride(run().NowNs());
      GiveUp();
      return FailAsWrong(wrong);
    }
    if (++received_ < start_.count || NextStride()) return;
    run().recorder.Call();
    GiveUp();
    Repeat();
  }

  // Returns false when the run is over.
  bool NextStride() {
    const uint64_t now_ns = run().NowNs();
    EndStride(now_ns);
    WaitsSince(now_ns);
    started_ns_ = now_ns;
    start_ = run().Begin(now_ns, stride_);
    return start_.count > 0;
  }

  void EndStride(uint64_t now_ns) {
    if (received_ > 0 && run().Counts(start_, now_ns)) {
      run().recorder.RecordPace(now_ns - started_ns_, received_, now_ns - run().from_ns());
      run().Ended(now_ns);
    }
    received_ = 0;
  }

  void GiveUp() {
    is_over_ = true;
    Cancel();
  }

  void Finished(const QGrpcStatus& status) override {
    EndStride(run().NowNs());
    if (status.isOk()) return FailAsEndedEarly();
    Fail(status);
  }

  const uint64_t stride_ = Stride(size());
  bool is_over_ = false;
  // The current stride: its start, and its messages so far.
  Start start_{};
  uint64_t started_ns_ = 0;
  uint64_t received_ = 0;
};

}  // namespace

std::unique_ptr<Worker> MakeServerStreamWorker(Bench& bench, Client& client) {
  return std::make_unique<ServerStreamWorker>(bench, client);
}
