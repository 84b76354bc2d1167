#pragma once

#include <cstdint>
#include <string>
#include <vector>

// An HdrHistogram of latencies from 1 ns to 1 h with three significant digits; larger values count as the largest.
class Histogram {
 public:
  Histogram();

  void Record(uint64_t value, uint64_t count);
  void Add(const Histogram& other);
  void Clear();

  uint64_t count() const { return count_; }

  // Returns the largest value equivalent to the one at `percentile`.
  uint64_t AtPercentile(double percentile) const;

  // Encodes as HdrHistogram V2, uncompressed, in base64.
  std::string Encoded() const;

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  // The last nonzero place.
  size_t last_ = 0;
};
