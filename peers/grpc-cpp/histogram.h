#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

// Latencies in ns, in constant memory: 64 linear steps in each power of two, so a percentile is right to 1.6 %.
class Histogram {
 public:
  void Record(uint64_t ns) {
    ++counts_[Index(ns)];
    ++count_;
    sum_ += static_cast<double>(ns);
    min_ = std::min(min_, ns);
    max_ = std::max(max_, ns);
  }

  uint64_t count() const { return count_; }
  uint64_t min() const { return min_; }
  uint64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

  // The upper end of the step in which the percentile lies.
  uint64_t Percentile(double percentile) const {
    const double wanted = percentile / 100 * static_cast<double>(count_);
    uint64_t seen = 0;
    for (size_t index = 0; index < counts_.size(); ++index) {
      seen += counts_[index];
      if (seen > 0 && static_cast<double>(seen) >= wanted) return std::clamp(UpperEnd(index), min_, max_);
    }
    return max_;
  }

 private:
  static constexpr int kStepBits = 6;
  static constexpr size_t kSteps = size_t{1} << kStepBits;

  // 200 ns = 0b11001000: highest bit 7, shift 7 - 6 = 1, step 100 - 64 = 36, index (1 + 1) * 64 + 36 = 164.
  static size_t Index(uint64_t ns) {
    if (ns < kSteps) return ns;
    const int shift = 63 - __builtin_clzll(ns) - kStepBits;
    return (static_cast<size_t>(shift) + 1) * kSteps + ((ns >> shift) - kSteps);
  }

  static uint64_t UpperEnd(size_t index) {
    if (index < kSteps) return index;
    const size_t shift = index / kSteps - 1;
    return ((index % kSteps + kSteps + 1) << shift) - 1;
  }

  std::array<uint64_t, (64 - kStepBits + 1) * kSteps> counts_{};
  uint64_t count_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  double sum_ = 0;
};
