#include <QtGrpc/QGrpcClientStream>

#include <algorithm>

#include "common/stride.h"
#include "limits.h"
#include "messages.h"
#include "worker.h"

namespace {

using grpc::testing::BenchmarkService::Client;

// Runs one stream of requests at a time. Its messages count once the server's response has acknowledged all of them.
// Otherwise the stream is an error, however late it shows.
class ClientStreamWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  void Begin() override {
    stream_ = nullptr;
    sent_.Clear();
    handed_over_ = 0;
    is_complete_ = false;
    const uint64_t now_ns = run().NowNs();
    // The first pace includes the wait for the previous stream's response.
    if (!continues_) started_ns_ = now_ns;
    continues_ = false;
    if (!NextStride(now_ns)) return Retire();
    HandOver();
  }

  // Hands over some messages per turn of the event loop. Qt accepts everything and buffers what it cannot send yet,
  // without a signal for messages sent. So the event loop must run often enough to send, and streams have a bounded
  // size.
  void HandOver() {
    // The stream may also have been cancelled.
    if (stream_ != nullptr && stream_->isFinished()) return;
    for (uint64_t i = 0; i < messages_per_turn_ && !is_complete_; ++i) {
      if (remaining_ == 0) {
        const uint64_t now_ns = run().NowNs();
        EndStride(now_ns);
        if (handed_over_ >= stream_messages_ || !NextStride(now_ns)) return Complete();
      }
      --remaining_;
      ++handed_over_;
      Write();
    }
    const auto next = [this, stream = stream_] {
      if (stream == stream_) HandOver();
    };
    QMetaObject::invokeMethod(this, next, Qt::QueuedConnection);
  }

  // The first message starts the stream.
  void Write() {
    if (stream_ != nullptr) return stream_->writeMessage(bench_.request);
    stream_ = client_.StreamingFromClient(bench_.request).release();
    Follow(stream_);
  }

  void Complete() {
    is_complete_ = true;
    stream_->writesDone();
  }

  void EndStride(uint64_t now_ns) {
    if (run().Counts(start_, now_ns)) sent_.RecordPace(now_ns - started_ns_, start_.count, now_ns - run().from_ns());
    started_ns_ = now_ns;
    WaitsSince(now_ns);
  }

  // Returns false when the run is over.
  bool NextStride(uint64_t now_ns) {
    start_ = run().Begin(now_ns, stride_);
    remaining_ = start_.count;
    return remaining_ > 0;
  }

  void Finished(const QGrpcStatus& status) override {
    const bool was_complete = is_complete_;
    is_complete_ = true;
    if (!status.isOk()) return Fail(status);
    if (const std::string wrong = WrongResponse(call(), 0); !wrong.empty()) return FailAsWrong(wrong);
    if (!was_complete) return FailAsEndedEarly();
    if (sent_.operations() > 0) {
      run().recorder.Add(sent_);
      run().Ended(run().NowNs());
    }
    run().recorder.Call();
    continues_ = true;
    Repeat();
  }

  const uint64_t stride_ = Stride(size());
  const uint64_t messages_per_turn_ = MessagesOf(kTurnBytes, kTurnMessages, size());
  const uint64_t stream_messages_ = MessagesOf(kStreamBytes, kStreamMessages, size());
  QGrpcClientStream* stream_ = nullptr;
  Recorder sent_;
  // The current stride: its start, and its unsent messages.
  Start start_{};
  uint64_t started_ns_ = 0;
  uint64_t remaining_ = 0;
  // Messages of this stream.
  uint64_t handed_over_ = 0;
  // Nothing left to send.
  bool is_complete_ = false;
  // The previous stream succeeded.
  bool continues_ = false;
};

}  // namespace

std::unique_ptr<Worker> MakeClientStreamWorker(Bench& bench, Client& client) {
  return std::make_unique<ClientStreamWorker>(bench, client);
}
