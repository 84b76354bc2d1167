#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "load.h"
#include "recorder.h"

// What becomes of an operation that is about to begin.
struct Start {
  // How many of a stride of messages may begin; 0: the run is over.
  uint64_t count;
  // Not in the warm-up.
  bool counts;
};

// One run, or a thread's part of it: its clock, when it is over, and what was recorded.
class Run {
 public:
  // The warm-up begins now.
  explicit Run(const LoadOptions& options)
      : from_ns_(options.warmup_ns),
        until_ns_(options.duration_ns ? options.warmup_ns + *options.duration_ns : UINT64_MAX),
        left_(options.total.value_or(UINT64_MAX)) {}

  // Since the warm-up began.
  uint64_t NowNs() const {
    return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - base_).count());
  }

  // Whether an operation may begin at `now_ns`, or a stride of `wanted` of them.
  Start Begin(uint64_t now_ns, uint64_t wanted) {
    if (now_ns >= until_ns_) return {0, false};
    if (now_ns < from_ns_) return {wanted, false};
    const uint64_t count = wanted < left_ ? wanted : left_;
    if (left_ != UINT64_MAX) left_ -= count;
    return {count, true};
  }

  // The run is over, but for what is under way.
  bool IsOver() const { return NowNs() >= until_ns_ || left_ == 0; }

  // `count` operations succeeded that took `latency_ns` each, the last ending at `ended_ns`.
  void Record(uint64_t latency_ns, uint64_t count, uint64_t ended_ns) {
    recorder.Record(latency_ns, count, ended_ns - from_ns_);
    Ended(ended_ns);
  }

  // Something that counts has ended.
  void Ended(uint64_t ended_ns) { last_ns_ = ended_ns > last_ns_ ? ended_ns : last_ns_; }

  // Counts a failed call, unless it falls into the warm-up. `code` is OK when something else than was asked for came.
  void Fail(int code, const std::string& message);

  // The measured time: to its end, or to that of the last operation which counts, should it have ended later.
  uint64_t DurationNs() const {
    const uint64_t until_ns = until_ns_ == UINT64_MAX ? 0 : until_ns_;
    return (until_ns > last_ns_ ? until_ns : last_ns_) - from_ns_;
  }

  uint64_t from_ns() const { return from_ns_; }
  // What the first failed call said; empty: none failed.
  const std::string& first_failure() const { return first_failure_; }

  Recorder recorder;

 private:
  const std::chrono::steady_clock::time_point base_ = std::chrono::steady_clock::now();
  const uint64_t from_ns_;
  const uint64_t until_ns_;
  // Operations that may still be counted; UINT64_MAX when it is time that ends the run.
  uint64_t left_;
  uint64_t last_ns_ = from_ns_;
  std::string first_failure_;
};
