#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "load_options.h"
#include "recorder.h"

// What becomes of an operation that is about to begin.
struct Start {
  // How many of a stride of messages may begin; 0: the run is over.
  uint64_t count;
  // False in the warm-up of a run by number: it does not count. Else it does if it ends within the measured time.
  bool counts;
};

using RunClock = std::chrono::steady_clock;

// One run, or a thread's part of it: its clock, when it is over, and what was recorded.
class Run {
 public:
  // The warm-up begins at `base`.
  Run(const LoadOptions& options, RunClock::time_point base)
      : base_(base),
        from_ns_(options.warmup_ns),
        over_ns_(options.duration_ns ? options.warmup_ns + *options.duration_ns : UINT64_MAX),
        until_ns_(options.EndsWithAnswers() ? UINT64_MAX : over_ns_),
        left_(options.total.value_or(UINT64_MAX)) {}

  // Since the warm-up began.
  uint64_t NowNs() const {
    return static_cast<uint64_t>(std::chrono::nanoseconds(RunClock::now() - base_).count());
  }

  // Whether an operation may begin at `now_ns`, or a stride of `wanted` of them.
  Start Begin(uint64_t now_ns, uint64_t wanted) {
    if (now_ns >= over_ns_) return {0, false};
    if (left_ != UINT64_MAX && now_ns < from_ns_) return {wanted, false};
    const uint64_t count = wanted < left_ ? wanted : left_;
    if (left_ != UINT64_MAX) left_ -= count;
    return {count, true};
  }

  // This moment is within the measured time. One that ends with the last answer has no end before.
  bool IsMeasured(uint64_t at_ns) const { return from_ns_ <= at_ns && at_ns < until_ns_; }

  // What began with `start` counts, as it ended at `ended_ns`.
  bool Counts(Start start, uint64_t ended_ns) const { return start.counts && IsMeasured(ended_ns); }

  // A call has ended, in whatever way.
  void CallEnded(uint64_t now_ns) { call_ended_ns_ = now_ns; }

  // The run is over, but for what is under way.
  bool IsOver() const { return NowNs() >= over_ns_ || left_ == 0; }

  // The clock ends the measured time, not the last answer.
  bool EndsByClock() const { return until_ns_ != UINT64_MAX; }

  // `count` operations succeeded that took `latency_ns` each, the last ending at `ended_ns`.
  void Record(uint64_t latency_ns, uint64_t count, uint64_t ended_ns) {
    recorder.Record(latency_ns, count, ended_ns - from_ns_);
    Ended(ended_ns);
  }

  // Something that counts has ended.
  void Ended(uint64_t ended_ns) { last_ns_ = ended_ns > last_ns_ ? ended_ns : last_ns_; }

  // Counts a call that failed, if that falls into the measured time, or behind it if it was given up. `code` is OK when
  // something else than was asked for came.
  void Fail(int code, const std::string& message, bool was_given_up);

  // The measured time. Of a run by number it ends with the last operation which counts.
  uint64_t DurationNs() const {
    if (over_ns_ == UINT64_MAX) return last_ns_ - from_ns_;
    return over_ns_ - from_ns_ + (EndsByClock() ? 0 : DrainNs());
  }

  // From the end of the time that was asked for until the last call under way had ended; 0 in a run by number.
  uint64_t DrainNs() const { return call_ended_ns_ > over_ns_ ? call_ended_ns_ - over_ns_ : 0; }

  uint64_t from_ns() const { return from_ns_; }
  // What the first failed call said; empty: none failed.
  const std::string& first_failure() const { return first_failure_; }

  Recorder recorder;

 private:
  const RunClock::time_point base_;
  const uint64_t from_ns_;
  // Nothing begins any more; UINT64_MAX when a count ends the run.
  const uint64_t over_ns_;
  // The measured time ends; UINT64_MAX when it does so with the last answer.
  const uint64_t until_ns_;
  // Operations that may still be counted; UINT64_MAX when it is time that ends the run.
  uint64_t left_;
  uint64_t last_ns_ = from_ns_;
  uint64_t call_ended_ns_ = 0;
  std::string first_failure_;
};
