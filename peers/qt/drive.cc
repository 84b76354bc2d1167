#include "drive.h"

#include <QtCore/QEventLoop>
#include <QtCore/QTimer>

#include <algorithm>

#include "common/measuring.h"
#include "messages.h"
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

std::unique_ptr<Worker> MakeWorker(Bench& bench, grpc::testing::BenchmarkService::Client& client) {
  switch (bench.options.call) {
    case CallType::kUnary:
      return MakeUnaryWorker(bench, client);
    case CallType::kClientStream:
      return MakeClientStreamWorker(bench, client);
    case CallType::kServerStream:
      return MakeServerStreamWorker(bench, client);
    case CallType::kBidiStream:
    case CallType::kPingPong:
      return MakeBidiStreamWorker(bench, client);
  }
  return nullptr;
}

// Calls `then` at `at_ns` of the run.
template <class Then>
void At(const Run& run, uint64_t at_ns, QObject* context, Then then) {
  const uint64_t now_ns = run.NowNs();
  const std::chrono::nanoseconds remaining(at_ns > now_ns ? at_ns - now_ns : 0);
  QTimer::singleShot(remaining, Qt::PreciseTimer, context, then);
}

LoadResult DriveOnce(const LoadOptions& options, const Clients& clients) {
  Measuring measuring(options);
  const std::chrono::nanoseconds began = std::chrono::system_clock::now().time_since_epoch();
  Bench bench{options, Run(options, RunClock::now()), RequestOf(options)};
  const Run& run = bench.run;
  std::vector<std::unique_ptr<Worker>> workers;
  for (size_t i = 0; i < options.in_flight; ++i) workers.push_back(MakeWorker(bench, *clients[i % clients.size()]));

  const auto begin_measuring = [&] {
    if (!measuring.has_started()) measuring.Begin();
  };
  QObject timers;
  if (options.warmup_ns == 0) {
    begin_measuring();
  } else {
    At(run, options.warmup_ns, &timers, begin_measuring);
  }
  if (run.EndsByClock()) At(run, options.warmup_ns + *options.duration_ns, &timers, [&] { measuring.End(); });
  QTimer check_timer;
  QObject::connect(&check_timer, &QTimer::timeout, &timers, [&] {
    const uint64_t now_ns = run.NowNs();
    for (const auto& worker : workers) worker->CancelIfStuck(now_ns);
  });
  const std::chrono::nanoseconds check_interval(std::clamp(options.timeout_ns / 4, kCheckIntervalNsMin, kCheckIntervalNsMax));
  check_timer.start(std::chrono::ceil<std::chrono::milliseconds>(check_interval));

  bench.active = workers.size();
  for (const auto& worker : workers) worker->BeginUnlessOver();
  while (bench.active > 0) bench.loop.exec();
  // With -n and for client streams, the last response ends the measured time. Otherwise its timer may not have fired
  // yet.
  measuring.End();

  LoadResult result{{}, began + std::chrono::nanoseconds(options.warmup_ns), run.DurationNs(), run.DrainNs(),
                    measuring.cpu(), run.first_failure(), std::nullopt};
  result.recorder.Add(run.recorder);
  return result;
}

}  // namespace

LoadResult Drive(const LoadOptions& options, const Clients& clients) {
  return WithWarmUp(options, [&](const LoadOptions& part) { return DriveOnce(part, clients); });
}
