#include <QtGrpc/QGrpcCallReply>

#include "messages.h"
#include "worker.h"

namespace {

using grpc::testing::BenchmarkService::Client;

class UnaryWorker final : public Worker {
 public:
  using Worker::Worker;

 private:
  void Begin() override { BeginAt(run().NowNs()); }

  // The end of a call is the start of the next, so that one reading of the clock serves both.
  void BeginAt(uint64_t now_ns) {
    start_ = run().Begin(now_ns, 1);
    if (start_.count == 0) return Retire();
    started_ns_ = now_ns;
    WaitsSince(now_ns);
    Follow(client_.UnaryCall(bench_.request).release());
  }

  void Finished(const QGrpcStatus& status) override {
    if (!status.isOk()) return Fail(status);
    if (const std::string wrong = WrongResponse(call(), size()); !wrong.empty()) return FailAsWrong(wrong);
    const uint64_t now_ns = run().NowNs();
    if (run().Counts(start_, now_ns)) {
      run().Record(now_ns - started_ns_, 1, now_ns);
      run().recorder.Call();
    }
    run().CallEnded(now_ns);
    BeginAt(now_ns);
  }

  Start start_{};
  uint64_t started_ns_ = 0;
};

}  // namespace

std::unique_ptr<Worker> MakeUnaryWorker(Bench& bench, Client& client) {
  return std::make_unique<UnaryWorker>(bench, client);
}
