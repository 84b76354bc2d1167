#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "histogram.h"

// Intervals between messages of one-way streams.
struct Pace {
  uint64_t messages = 0;
  uint64_t sum_ns = 0;
  uint64_t gap_max_ns = 0;
  uint64_t messages_per_reading = 0;
};

// One of the largest latencies or gaps, and when it ended, since the start of the measured time.
struct Spike {
  uint64_t took_ns;
  uint64_t at_ns;
};

// Counts and times operations in constant memory.
class Recorder {
 public:
  // Number of largest latencies kept with their time.
  static constexpr size_t kSpikesMax = 10;
  static constexpr size_t kCodes = 17;

  // Records `count` operations of `latency_ns` each, at `at_ns` of the measured time.
  void Record(uint64_t latency_ns, uint64_t count, uint64_t at_ns);

  // Records `count` messages of a one-way stream in `elapsed_ns`, between two readings of the clock.
  void RecordPace(uint64_t elapsed_ns, uint64_t count, uint64_t at_ns);

  // Counts a call that ended with OK.
  void Call() { ++calls_; }

  // Counts a call that ended with this status code, which is not OK.
  void Error(int code);

  void Add(const Recorder& other);
  void Clear();

  uint64_t operations() const { return latencies_.count() + pace_.messages; }
  bool has_latencies() const { return latencies_.count() > 0; }
  const Pace& pace() const { return pace_; }
  uint64_t calls() const { return calls_; }
  const std::array<uint64_t, kCodes>& errors() const { return errors_; }
  // Largest first.
  const std::vector<Spike>& spikes() const { return spikes_; }
  const Histogram& latencies() const { return latencies_; }
  uint64_t min_ns() const { return min_ns_; }
  uint64_t max_ns() const { return max_ns_; }
  double mean_ns() const { return static_cast<double>(sum_ns_) / static_cast<double>(latencies_.count()); }
  uint64_t PercentileNs(double percentile) const;

 private:
  void NoteSpike(uint64_t took_ns, uint64_t at_ns);
  void Insert(Spike spike);

  Histogram latencies_;
  // Exact, unlike the histogram's bounds.
  uint64_t min_ns_ = UINT64_MAX;
  uint64_t max_ns_ = 0;
  // 64 bits suffice for 584 years of latencies, summed over all operations.
  uint64_t sum_ns_ = 0;
  Pace pace_;
  uint64_t calls_ = 0;
  std::array<uint64_t, kCodes> errors_{};
  std::vector<Spike> spikes_;
};

// Returns a name like `UNAVAILABLE`; UNKNOWN for unknown codes.
const char* CodeName(int code);
