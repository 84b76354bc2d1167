#include "common/stride.h"
#include "worker.h"

namespace {

using grpc::testing::BenchmarkService;
using grpc::testing::SimpleResponse;

// Runs one stream of responses at a time, cancelled when the run is over.
class ServerStreamWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  void Begin() override {
    reader_.reset();
    failure_.reset();
    received_ = 0;
    started_ns_ = run().NowNs();
    start_ = run().Begin(started_ns_, stride_);
    if (start_.count == 0) return Retire();
    reader_ = stub_.AsyncStreamingFromServer(NewContext(), bench_.request, &bench_.queue,
                                             started_.tag());
  }

  void Started(bool ok) {
    if (!ok) return Finish();
    reader_->Read(&response_, read_.tag());
  }

  void Read(bool ok) {
    if (!ok) {
      EndStride(run().NowNs());
      return Finish();
    }
    if (const std::string wrong = WrongSize(response_, size()); !wrong.empty()) {
      failure_ = Wrong(wrong);
      EndStride(run().NowNs());
      return Cancel();
    }
    if (++received_ == start_.count && !NextStride()) {
      run().recorder.Call();
      is_over_ = true;
      return Cancel();
    }
    reader_->Read(&response_, read_.tag());
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

  void Cancel() {
    context().TryCancel();
    Finish();
  }

  void Finish() { reader_->Finish(&status_, finished_.tag()); }

  void Finished(bool /*ok*/) {
    if (is_over_) return Repeat();
    if (failure_) return Fail(*failure_);
    Fail(status_.ok() ? EndedEarly() : status_);
  }

  const uint64_t stride_ = Stride(size());
  std::unique_ptr<grpc::ClientAsyncReader<SimpleResponse>> reader_;
  SimpleResponse response_;
  grpc::Status status_;
  // The reason why this side cancelled the stream.
  std::optional<grpc::Status> failure_;
  bool is_over_ = false;
  // The current stride: its start, and its messages so far.
  Start start_{};
  uint64_t started_ns_ = 0;
  uint64_t received_ = 0;
  Then<ServerStreamWorker, &ServerStreamWorker::Started> started_{this};
  Then<ServerStreamWorker, &ServerStreamWorker::Read> read_{this};
  Then<ServerStreamWorker, &ServerStreamWorker::Finished> finished_{this};
};

}  // namespace

std::unique_ptr<Worker> MakeServerStreamWorker(Bench& bench, BenchmarkService::Stub& stub) {
  return std::make_unique<ServerStreamWorker>(bench, stub);
}
