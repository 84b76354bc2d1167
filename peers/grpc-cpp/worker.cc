#include "worker.h"

#include <grpc/support/time.h>

namespace {

// Pause after a failed call, so that a server that rejects everything is not flooded.
constexpr uint64_t kPauseAfterErrorNs = 10'000'000;

}  // namespace

void Worker::BeginUnlessOver() {
  if (run().IsOver()) return Retire();
  timed_out_ = false;
  WaitsSince(run().NowNs());
  Begin();
}

void Worker::Repeat() {
  run().CallEnded(run().NowNs());
  BeginUnlessOver();
}

void Worker::CancelIfStuck(uint64_t now_ns) {
  if (waits_since_ns_ == 0 || now_ns <= waits_since_ns_ + bench_.options.timeout_ns) return;
  waits_since_ns_ = 0;
  timed_out_ = true;
  context_->TryCancel();
}

void Worker::Fail(const grpc::Status& status) {
  waits_since_ns_ = 0;
  run().CallEnded(run().NowNs());
  if (timed_out_) {
    run().Fail(grpc::StatusCode::DEADLINE_EXCEEDED,
               "nothing came within " + std::to_string(bench_.options.timeout_ns / 1'000'000) + " ms", true);
  } else {
    run().Fail(status.error_code(), status.error_message(), false);
  }
  alarm_.emplace().Set(&bench_.queue, FromNow(kPauseAfterErrorNs), after_pause_.tag());
}

void Worker::AfterPause(bool /*ok*/) { BeginUnlessOver(); }

gpr_timespec FromNow(uint64_t ns) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(static_cast<int64_t>(ns), GPR_TIMESPAN));
}
