#include "common/stride.h"
#include "worker.h"
#include "write_batch.h"

namespace {

using grpc::testing::BenchmarkService;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;

// Runs one stream of requests at a time. Its messages count once the server's response has acknowledged all of them.
// Otherwise the stream is an error, however late it shows.
class ClientStreamWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  void Begin() override {
    writer_.reset();
    sent_.Clear();
    start_ = {};
    remaining_ = 0;
    has_started_ = is_complete_ = false;
    writer_ = stub_.AsyncStreamingFromClient(NewContext(), &response_, &bench_.queue,
                                             sendable_.tag());
  }

  // The stream has started or has accepted a message. gRPC accepts one at a time.
  void Sendable(bool ok) {
    if (!ok) return Finish(true);
    if (remaining_ == 0 && !NextStride()) return writer_->WritesDone(closed_.tag());
    --remaining_;
    writer_->Write(bench_.request, batch_.Next(size(), false), sendable_.tag());
  }

  // Ends a stride and starts the next. Returns false when the run is over.
  bool NextStride() {
    const uint64_t now_ns = run().NowNs();
    if (run().Counts(start_, now_ns)) sent_.RecordPace(now_ns - started_ns_, start_.count, now_ns - run().from_ns());
    WaitsSince(now_ns);
    started_ns_ = now_ns;
    start_ = run().Begin(now_ns, stride_);
    remaining_ = start_.count;
    is_complete_ = start_.count == 0;
    has_started_ = has_started_ || !is_complete_;
    return !is_complete_;
  }

  void Finish(bool /*ok*/) { writer_->Finish(&status_, finished_.tag()); }

  void Finished(bool /*ok*/) {
    if (!status_.ok()) return Fail(status_);
    if (const std::string wrong = WrongSize(response_, 0); !wrong.empty()) return Fail(Wrong(wrong));
    if (!is_complete_) return Fail(EndedEarly());
    // A stream without a message, because the run was over first, does not count.
    if (!has_started_) return Repeat();
    if (sent_.operations() > 0) {
      run().recorder.Add(sent_);
      run().Ended(run().NowNs());
    }
    run().recorder.Call();
    Repeat();
  }

  const uint64_t stride_ = Stride(size());
  WriteBatch batch_;
  Recorder sent_;
  std::unique_ptr<grpc::ClientAsyncWriter<SimpleRequest>> writer_;
  SimpleResponse response_;
  grpc::Status status_;
  // The current stride: its start, and its unsent messages.
  Start start_{};
  uint64_t started_ns_ = 0;
  uint64_t remaining_ = 0;
  bool has_started_ = false;
  // Nothing left to send.
  bool is_complete_ = false;
  Then<ClientStreamWorker, &ClientStreamWorker::Sendable> sendable_{this};
  Then<ClientStreamWorker, &ClientStreamWorker::Finish> closed_{this};
  Then<ClientStreamWorker, &ClientStreamWorker::Finished> finished_{this};
};

}  // namespace

std::unique_ptr<Worker> MakeClientStreamWorker(Bench& bench, BenchmarkService::Stub& stub) {
  return std::make_unique<ClientStreamWorker>(bench, stub);
}
