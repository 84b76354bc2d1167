#include "drive.h"

#include <algorithm>
#include <thread>

#include "common/measuring.h"
#include "worker.h"

namespace {

// Interval between checks of the workers.
constexpr uint64_t kCheckIntervalNsMin = 1'000'000;
constexpr uint64_t kCheckIntervalNsMax = 250'000'000;

// Creates the request of a run: streams of responses only ask for the payload, streams of requests only send it, the
// others do both.
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
    case CallType::kPingPong:
      return MakeBidiStreamWorker(bench, stub);
  }
  return nullptr;
}

// The workers of a thread and their supervisor.
class Crew {
 public:
  // Creates the run's workers number `thread`, `thread` + `options.threads` and so on; `options` are this thread's
  // part. The first crew announces the start of the measured time, and its end if the clock ends it.
  Crew(const LoadOptions& options, RunClock::time_point base, const Stubs& stubs, size_t thread, Measuring* measuring)
      : bench_{options, Run(options, base)}, measuring_(measuring) {
    bench_.request = RequestOf(options);
    for (size_t i = 0; i < options.in_flight; ++i) {
      workers_.push_back(MakeWorker(bench_, *stubs[(thread + i * options.threads) % stubs.size()]));
    }
    bench_.active = workers_.size();
    check_interval_ns_ = std::clamp(options.timeout_ns / 4, kCheckIntervalNsMin, kCheckIntervalNsMax);
  }

  // Runs until the run is over.
  void Work() {
    if (measuring_ != nullptr) SetMeasuring();
    CheckWorkers(true);
    for (const auto& worker : workers_) worker->BeginUnlessOver();
    void* tag = nullptr;
    bool ok = false;
    while (bench_.active > 0 && bench_.queue.Next(&tag, &ok)) static_cast<Continuation*>(tag)->Resume(ok);
    // The time is over, but the alarm may not have fired yet.
    if (measuring_ != nullptr && bench_.run.EndsByClock()) measuring_->End();
  }

  const Run& run() const { return bench_.run; }

 private:
  void SetMeasuring() {
    const uint64_t from_ns = bench_.options.warmup_ns;
    if (from_ns == 0) {
      measuring_->Begin();
    } else {
      warm_alarm_.Set(&bench_.queue, FromNow(Until(from_ns)), warm_.tag());
    }
    if (bench_.run.EndsByClock()) {
      window_alarm_.Set(&bench_.queue, FromNow(Until(from_ns + *bench_.options.duration_ns)), window_.tag());
    }
  }

  // Time from now until `at_ns`.
  uint64_t Until(uint64_t at_ns) const {
    const uint64_t now_ns = bench_.run.NowNs();
    return at_ns > now_ns ? at_ns - now_ns : 0;
  }

  void Warm(bool /*ok*/) {
    if (!measuring_->has_started()) measuring_->Begin();
  }

  void WindowOver(bool /*ok*/) { measuring_->End(); }

  void CheckWorkers(bool /*ok*/) {
    const uint64_t now_ns = bench_.run.NowNs();
    for (const auto& worker : workers_) worker->CancelIfStuck(now_ns);
    check_alarm_.emplace().Set(&bench_.queue, FromNow(check_interval_ns_), check_.tag());
  }

  Bench bench_;
  Measuring* const measuring_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t check_interval_ns_;
  grpc::Alarm warm_alarm_;
  grpc::Alarm window_alarm_;
  std::optional<grpc::Alarm> check_alarm_;
  Then<Crew, &Crew::Warm> warm_{this};
  Then<Crew, &Crew::WindowOver> window_{this};
  Then<Crew, &Crew::CheckWorkers> check_{this};
};

// Returns a thread's share of a total divided as evenly as possible.
uint64_t PartOfTotal(uint64_t total, uint32_t thread, uint32_t threads) {
  return total / threads + (thread < total % threads ? 1 : 0);
}

// Returns a thread's part of the run.
LoadOptions PartOf(const LoadOptions& options, uint32_t thread) {
  LoadOptions part = options;
  part.in_flight = static_cast<uint32_t>(PartOfTotal(options.in_flight, thread, options.threads));
  if (options.total) part.total = PartOfTotal(*options.total, thread, options.threads);
  return part;
}

LoadResult DriveOnce(const LoadOptions& options, const Stubs& stubs) {
  Measuring measuring(options);
  std::vector<LoadOptions> parts;
  for (uint32_t thread = 0; thread < options.threads; ++thread) parts.push_back(PartOf(options, thread));
  // Never destroyed: that would wait for the queues' last alarms, and the process is about to end.
  std::vector<Crew*> crews;
  const RunClock::time_point base = RunClock::now();
  const std::chrono::nanoseconds began = std::chrono::system_clock::now().time_since_epoch();
  for (size_t i = 0; i < parts.size(); ++i) {
    crews.push_back(new Crew(parts[i], base, stubs, i, i == 0 ? &measuring : nullptr));
  }
  std::vector<std::thread> threads;
  for (size_t i = 1; i < crews.size(); ++i) threads.emplace_back(&Crew::Work, crews[i]);
  crews.front()->Work();
  for (std::thread& thread : threads) thread.join();
  // The other runs are measured until their last response.
  measuring.End();

  LoadResult result{{}, began + std::chrono::nanoseconds(options.warmup_ns), 0, 0, measuring.cpu(), "", std::nullopt};
  for (const Crew* crew : crews) {
    const Run& run = crew->run();
    result.recorder.Add(run.recorder);
    result.duration_ns = std::max(result.duration_ns, run.DurationNs());
    result.drain_ns = std::max(result.drain_ns, run.DrainNs());
    if (result.first_failure.empty()) result.first_failure = run.first_failure();
  }
  return result;
}

}  // namespace

LoadResult Drive(const LoadOptions& options, const Stubs& stubs) {
  return WithWarmUp(options, [&](const LoadOptions& part) { return DriveOnce(part, stubs); });
}
