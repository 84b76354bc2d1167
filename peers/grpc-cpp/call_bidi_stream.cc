#include <algorithm>
#include <vector>

#include "common/stride.h"
#include "common/window.h"
#include "worker.h"
#include "write_batch.h"

namespace {

using grpc::testing::BenchmarkService;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;

// Runs one bidirectional stream at a time, pipelined: messages are sent ahead of the replies, up to the window. A
// message's latency is from hand-over to the reply with the same ordinal.
class BidiStreamWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  void Begin() override {
    stream_.reset();
    failure_.reset();
    sent_ = received_ = remaining_ = 0;
    writing_ = is_full_ = is_complete_ = has_ended_ = false;
    timed_ = {};
    stream_ =
        stub_.AsyncStreamingCall(NewContext(), &bench_.queue, started_.tag());
  }

  void Started(bool ok) {
    has_ended_ = !ok;
    if (!ok) return FinishIfEnded();
    stream_->Read(&response_, read_.tag());
    Write();
  }

  // Starts the next write if there is room in the window.
  void Write() {
    is_full_ = sent_ - received_ >= window_;
    if (is_full_) return;
    writing_ = true;
    if (remaining_ == 0 && !NextStride()) return stream_->WritesDone(closed_.tag());
    --remaining_;
    ++sent_;
    const bool fills_window = sent_ - received_ >= window_;
    stream_->Write(bench_.request, batch_.Next(size(), fills_window), wrote_.tag());
  }

  void Wrote(bool ok) {
    writing_ = false;
    // A broken stream ends its reads too.
    if (ok && !has_ended_) Write();
    FinishIfEnded();
  }

  void Closed(bool /*ok*/) {
    writing_ = false;
    FinishIfEnded();
  }

  void Read(bool ok) {
    if (!ok) {
      has_ended_ = true;
      return FinishIfEnded();
    }
    if (const std::string wrong = WrongSize(response_, size()); !wrong.empty() && !failure_) {
      failure_ = Wrong(wrong);
      context().TryCancel();
    }
    if (!failure_) Count();
    stream_->Read(&response_, read_.tag());
  }

  void Count() {
    if (received_ % stride_ == 0) {
      const uint64_t now_ns = run().NowNs();
      RecordStride(now_ns);
      timed_ = {Stamp(received_), now_ns, 0};
      WaitsSince(now_ns);
    }
    ++timed_.count;
    ++received_;
    // Writing resumes at every quarter of the window: often enough to keep the stream full, rarely enough that messages
    // still go out together.
    if (received_ % quarter_ == 0 && is_full_) Write();
  }

  // Starts a stride. Returns false when the run is over.
  bool NextStride() {
    const uint64_t now_ns = run().NowNs();
    const Start start = run().Begin(now_ns, stride_);
    remaining_ = start.count;
    is_complete_ = remaining_ == 0;
    if (!is_complete_) Stamp(sent_) = start.counts ? std::max<uint64_t>(now_ns, 1) : 0;
    return !is_complete_;
  }

  // Records the latency of the stride's first message for all of its messages, at the end of the last.
  void RecordStride(uint64_t now_ns) {
    if (timed_.sent_ns > 0 && timed_.count > 0 && run().IsMeasured(now_ns)) {
      run().Record(timed_.received_ns - timed_.sent_ns, timed_.count, now_ns);
    }
    timed_ = {};
  }

  uint64_t& Stamp(uint64_t ordinal) { return stamps_ns_[ordinal / stride_ % stamps_ns_.size()]; }

  void FinishIfEnded() {
    if (has_ended_ && !writing_) stream_->Finish(&status_, finished_.tag());
  }

  void Finished(bool /*ok*/) {
    RecordStride(run().NowNs());
    if (failure_) return Fail(*failure_);
    if (!status_.ok()) return Fail(status_);
    if (!is_complete_ || received_ != sent_) return Fail(EndedEarly());
    // A stream without a message, because the run was over first, does not count.
    if (received_ > 0) run().recorder.Call();
    Repeat();
  }

  // A stride whose first reply has arrived: hand-over time of its first message (0 during the warm-up of a run by
  // number), arrival of its reply, and the replies so far.
  struct Timed {
    uint64_t sent_ns = 0;
    uint64_t received_ns = 0;
    uint64_t count = 0;
  };

  // Each round trip of a ping-pong is timed.
  const uint64_t stride_ = bench_.options.call == CallType::kPingPong ? 1 : Stride(size());
  const uint64_t window_ = Window(bench_.options);
  const uint64_t quarter_ = std::max<uint64_t>(window_ / 4, 1);
  // Hand-over time of the first message of each stride in flight: those that fill the window, the current one and the
  // partly answered one.
  std::vector<uint64_t> stamps_ns_ = std::vector<uint64_t>(window_ / stride_ + 2);
  WriteBatch batch_;
  Timed timed_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<SimpleRequest, SimpleResponse>> stream_;
  SimpleResponse response_;
  grpc::Status status_;
  // The reason why this side cancelled the stream.
  std::optional<grpc::Status> failure_;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  // Unsent messages of the current stride.
  uint64_t remaining_ = 0;
  bool writing_ = false;
  bool is_full_ = false;
  // Nothing left to send.
  bool is_complete_ = false;
  // Nothing left to receive.
  bool has_ended_ = false;
  Then<BidiStreamWorker, &BidiStreamWorker::Started> started_{this};
  Then<BidiStreamWorker, &BidiStreamWorker::Wrote> wrote_{this};
  Then<BidiStreamWorker, &BidiStreamWorker::Closed> closed_{this};
  Then<BidiStreamWorker, &BidiStreamWorker::Read> read_{this};
  Then<BidiStreamWorker, &BidiStreamWorker::Finished> finished_{this};
};

}  // namespace

std::unique_ptr<Worker> MakeBidiStreamWorker(Bench& bench, BenchmarkService::Stub& stub) {
  return std::make_unique<BidiStreamWorker>(bench, stub);
}
