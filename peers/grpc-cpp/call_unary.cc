#include "worker.h"

namespace {

using grpc::testing::BenchmarkService;
using grpc::testing::SimpleResponse;

class UnaryWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  void Begin() override { Begin(run().NowNs()); }

  // The end of a call is the start of the next, so that one reading of the clock serves both.
  void Begin(uint64_t now_ns) {
    start_ = run().Begin(now_ns, 1);
    if (start_.count == 0) return Retire();
    started_ns_ = now_ns;
    WaitsSince(now_ns);
    reader_.reset();
    reader_ = stub_.AsyncUnaryCall(NewContext(), bench_.request, &bench_.queue);
    reader_->Finish(&response_, &status_, finished_.tag());
  }

  void Finished(bool /*ok*/) {
    if (!status_.ok()) return Fail(status_);
    if (const std::string wrong = WrongSize(response_, size()); !wrong.empty()) return Fail(Wrong(wrong));
    const uint64_t now_ns = run().NowNs();
    if (run().Counts(start_, now_ns)) {
      run().Record(now_ns - started_ns_, 1, now_ns);
      run().recorder.Call();
    }
    run().CallEnded(now_ns);
    Begin(now_ns);
  }

  std::unique_ptr<grpc::ClientAsyncResponseReader<SimpleResponse>> reader_;
  SimpleResponse response_;
  grpc::Status status_;
  Start start_{};
  uint64_t started_ns_ = 0;
  Then<UnaryWorker, &UnaryWorker::Finished> finished_{this};
};

}  // namespace

std::unique_ptr<Worker> MakeUnaryWorker(Bench& bench, BenchmarkService::Stub& stub) {
  return std::make_unique<UnaryWorker>(bench, stub);
}
