#include "drive.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "worker.h"

namespace {

// How often workers are looked at.
constexpr uint64_t kLookEveryNsMin = 1'000'000;
constexpr uint64_t kLookEveryNsMax = 250'000'000;

CpuTime CpuOfThisProcess() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return {ns(usage.ru_utime), ns(usage.ru_stime)};
}

// All streams of responses ask for the payload, those of requests bring it, the others do both.
grpc::testing::SimpleRequest RequestOf(const LoadOptions& options) {
  return MakeRequest(options.call == CallType::kServerStream ? 0 : options.size,
                     options.call == CallType::kClientStream ? 0 : options.size);
}

std::unique_ptr<Worker> MakeWorker(Bench& bench, grpc::testing::BenchmarkService::Stub& stub) {
  switch (bench.options.call) {
    case CallType::kUnary:
      return MakeUnaryWorker(bench, stub);
    case CallType::kClientStream:
      return MakeClientStreamWorker(bench, stub);
    case CallType::kServerStream:
      return MakeServerStreamWorker(bench, stub);
    case CallType::kBidiStream:
      return MakeBidiStreamWorker(bench, stub);
  }
  return nullptr;
}

// The workers of a run, and whoever watches over them.
class Crew {
 public:
  Crew(const LoadOptions& options, const Stubs& stubs) : bench_{options}, announces_(options.announce) {
    bench_.request = RequestOf(options);
    for (size_t i = 0; i < options.in_flight; ++i) workers_.push_back(MakeWorker(bench_, *stubs[i % stubs.size()]));
    bench_.active = workers_.size();
    look_every_ns_ = std::clamp(options.timeout_ns / 4, kLookEveryNsMin, kLookEveryNsMax);
  }

  LoadResult Work() {
    const std::chrono::nanoseconds began = std::chrono::system_clock::now().time_since_epoch();
    const uint64_t warmup_ns = bench_.options.warmup_ns;
    if (warmup_ns == 0) {
      BeginMeasuring(true);
    } else {
      warm_alarm_.Set(&bench_.queue, FromNow(warmup_ns), warm_.tag());
    }
    Look(true);
    for (const auto& worker : workers_) worker->Repeat();
    void* tag = nullptr;
    bool ok = false;
    while (bench_.active > 0 && bench_.queue.Next(&tag, &ok)) static_cast<Continuation*>(tag)->Resume(ok);
    if (!is_measuring_) BeginMeasuring(true);
    const CpuTime after = CpuOfThisProcess();
    Announce("measured");
    return {bench_.run.recorder,
            began + std::chrono::nanoseconds(warmup_ns),
            bench_.run.DurationNs(),
            {after.user_ns - before_.user_ns, after.system_ns - before_.system_ns},
            bench_.run.first_failure(),
            std::nullopt};
  }

 private:
  void BeginMeasuring(bool /*ok*/) {
    is_measuring_ = true;
    Announce("measuring");
    before_ = CpuOfThisProcess();
  }

  void Look(bool /*ok*/) {
    const uint64_t now_ns = bench_.run.NowNs();
    for (const auto& worker : workers_) worker->CancelIfStuck(now_ns);
    look_alarm_.emplace().Set(&bench_.queue, FromNow(look_every_ns_), look_.tag());
  }

  void Announce(const char* line) const {
    if (!announces_) return;
    std::puts(line);
    std::fflush(stdout);
  }

  Bench bench_;
  const bool announces_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t look_every_ns_;
  bool is_measuring_ = false;
  CpuTime before_{};
  grpc::Alarm warm_alarm_;
  std::optional<grpc::Alarm> look_alarm_;
  Then<Crew, &Crew::BeginMeasuring> warm_{this};
  Then<Crew, &Crew::Look> look_{this};
};

}  // namespace

LoadResult Drive(const LoadOptions& options, const Stubs& stubs) {
  // Never destroyed: that would wait for the queue's last alarm, and the process is about to end.
  return (new Crew(options, stubs))->Work();
}
