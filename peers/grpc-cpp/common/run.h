#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "load_options.h"
#include "recorder.h"

// The fate of an operation about to start.
struct Start {
  // Number of messages of a stride that may start; 0 if the run is over.
  uint64_t count;
  // False during the warm-up of a run by number. Otherwise the operation counts if it ends within the measured time.
  bool counts;
};

using RunClock = std::chrono::steady_clock;

// A run or a thread's part of it: its clock, its end, and its records.
class Run {
 public:
  // The warm-up starts at `base`.
  Run(const LoadOptions& options, RunClock::time_point base)
      : base_(base),
        from_ns_(options.warmup_ns),
        over_ns_(options.duration_ns ? options.warmup_ns + *options.duration_ns : UINT64_MAX),
        until_ns_(options.EndsWithResponses() ? UINT64_MAX : over_ns_),
        remaining_(options.total.value_or(UINT64_MAX)) {}

  // Time since the start of the warm-up.
  uint64_t NowNs() const {
    return static_cast<uint64_t>(std::chrono::nanoseconds(RunClock::now() - base_).count());
  }

  // Decides whether an operation, or a stride of `requested` operations, may start at `now_ns`.
  Start Begin(uint64_t now_ns, uint64_t requested) {
    if (now_ns >= over_ns_) return {0, false};
    if (remaining_ != UINT64_MAX && now_ns < from_ns_) return {requested, false};
    const uint64_t count = requested < remaining_ ? requested : remaining_;
    if (remaining_ != UINT64_MAX) remaining_ -= count;
    return {count, true};
  }

  // Returns whether the moment is within the measured time, which is open-ended if the last response ends it.
  bool IsMeasured(uint64_t at_ns) const { return from_ns_ <= at_ns && at_ns < until_ns_; }

  // Returns whether an operation that started with `start` and ended at `ended_ns` counts.
  bool Counts(Start start, uint64_t ended_ns) const { return start.counts && IsMeasured(ended_ns); }

  // Records that a call has ended, successfully or not.
  void CallEnded(uint64_t now_ns) { call_ended_ns_ = now_ns; }

  // Returns whether no further operation may start.
  bool IsOver() const { return NowNs() >= over_ns_ || remaining_ == 0; }

  // Returns whether the clock, not the last response, ends the measured time.
  bool EndsByClock() const { return until_ns_ != UINT64_MAX; }

  // Records `count` operations of `latency_ns` each, the last of which ended at `ended_ns`.
  void Record(uint64_t latency_ns, uint64_t count, uint64_t ended_ns) {
    recorder.Record(latency_ns, count, ended_ns - from_ns_);
    Ended(ended_ns);
  }

  // Records the end of an operation that counts.
  void Ended(uint64_t ended_ns) { last_ns_ = ended_ns > last_ns_ ? ended_ns : last_ns_; }

  // Counts a call that failed within the measured time, or timed out within or after it. `code` is OK if the wrong
  // response came.
  void Fail(int code, const std::string& message, bool timed_out);

  // The measured time. In a run by number, the last counted operation ends it.
  uint64_t DurationNs() const {
    if (over_ns_ == UINT64_MAX) return last_ns_ - from_ns_;
    return over_ns_ - from_ns_ + (EndsByClock() ? 0 : DrainNs());
  }

  // From the end of the requested time to the end of the last call in flight; 0 in a run by number.
  uint64_t DrainNs() const { return call_ended_ns_ > over_ns_ ? call_ended_ns_ - over_ns_ : 0; }

  uint64_t from_ns() const { return from_ns_; }
  // Message of the first failed call; empty if none failed.
  const std::string& first_failure() const { return first_failure_; }

  Recorder recorder;

 private:
  const RunClock::time_point base_;
  const uint64_t from_ns_;
  // No operation starts from here on; UINT64_MAX if a count ends the run.
  const uint64_t over_ns_;
  // End of the measured time; UINT64_MAX if the last response ends it.
  const uint64_t until_ns_;
  // Operations that may still be counted; UINT64_MAX if time ends the run.
  uint64_t remaining_;
  uint64_t last_ns_ = from_ns_;
  uint64_t call_ended_ns_ = 0;
  std::string first_failure_;
};
