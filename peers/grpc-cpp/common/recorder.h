#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "histogram.h"

// How messages of streams one way followed each other.
struct Pace {
  uint64_t messages = 0;
  uint64_t sum_ns = 0;
  uint64_t gap_max_ns = 0;
  uint64_t messages_per_reading = 0;
};

// One of the largest latencies or gaps, and when it ended, counted from where measuring began.
struct Spike {
  uint64_t took_ns;
  uint64_t at_ns;
};

// Counts and times operations in constant memory.
class Recorder {
 public:
  // How many of the largest latencies are kept with their time.
  static constexpr size_t kSpikesMax = 10;
  static constexpr size_t kCodes = 17;

  // `count` operations succeeded that took `latency_ns` each; it is now `at_ns` of the measured time.
  void Record(uint64_t latency_ns, uint64_t count, uint64_t at_ns);

  // `count` messages of a stream one way went by in `elapsed_ns`, from one reading of the clock to the next.
  void RecordPace(uint64_t elapsed_ns, uint64_t count, uint64_t at_ns);

  // A call ended with OK.
  void Call() { ++calls_; }

  // A call ended with this status code, which is not OK.
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
  // 64 bits are 584 years of latencies, of all operations together.
  uint64_t sum_ns_ = 0;
  Pace pace_;
  uint64_t calls_ = 0;
  std::array<uint64_t, kCodes> errors_{};
  std::vector<Spike> spikes_;
};

// `UNAVAILABLE`; UNKNOWN for what gRPC does not know.
const char* CodeName(int code);
