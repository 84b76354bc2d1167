#include "worker.h"

#include <chrono>

namespace {

// Pause after a failed call, so that a server that rejects everything is not flooded.
constexpr std::chrono::milliseconds kPauseAfterError(10);

}  // namespace

void Worker::BeginUnlessOver() {
  if (run().IsOver()) return Retire();
  WaitsSince(run().NowNs());
  Begin();
}

void Worker::Follow(QGrpcOperation* call) {
  call_.reset(call);
  connect(call, &QGrpcOperation::finished, this, [this](const QGrpcStatus& status) { Finished(status); });
}

void Worker::Repeat() {
  run().CallEnded(run().NowNs());
  BeginUnlessOver();
}

void Worker::Retire() {
  waits_since_ns_ = 0;
  if (--bench_.active == 0) bench_.loop.quit();
}

void Worker::Cancel() {
  call_->disconnect(this);
  // Cancels later: Qt may still be delivering what it has read of the call, and would continue with a deleted call.
  QMetaObject::invokeMethod(call_.get(), &QGrpcOperation::cancel, Qt::QueuedConnection);
}

void Worker::CancelIfStuck(uint64_t now_ns) {
  if (waits_since_ns_ == 0 || now_ns <= waits_since_ns_ + bench_.options.timeout_ns) return;
  waits_since_ns_ = 0;
  Cancel();
  run().CallEnded(run().NowNs());
  run().Fail(static_cast<int>(QtGrpc::StatusCode::DeadlineExceeded),
             "nothing came within " + std::to_string(bench_.options.timeout_ns / 1'000'000) + " ms", true);
  pause_timer_.start(kPauseAfterError);
}

void Worker::Fail(int code, const std::string& message) {
  waits_since_ns_ = 0;
  run().CallEnded(run().NowNs());
  run().Fail(code, message, false);
  pause_timer_.start(kPauseAfterError);
}
