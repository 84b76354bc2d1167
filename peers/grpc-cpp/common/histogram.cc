#include "histogram.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr uint64_t kLowest = 1;
constexpr uint64_t kHighest = 3'600'000'000'000;
constexpr uint32_t kSignificantDigits = 3;

// 2048 steps per power of two distinguish 1000 values of three digits.
constexpr int kHalfBits = 10;
constexpr uint64_t kHalf = uint64_t{1} << kHalfBits;

// The first power of two has a whole set of steps, each further one half a set. Example: 3000 = 0b101110111000: bucket
// 53 - 52 = 1, step 3000 >> 1 = 1500, place (1 + 1) * 1024 + 1500 - 1024 = 2524.
size_t IndexOf(uint64_t value) {
  const int bucket = 63 - kHalfBits - __builtin_clzll(value | (2 * kHalf - 1));
  return ((static_cast<size_t>(bucket) + 1) << kHalfBits) + (value >> bucket) - kHalf;
}

uint64_t LargestAt(size_t index) {
  if (index < 2 * kHalf) return index;
  const size_t bucket = (index >> kHalfBits) - 1;
  return ((index % kHalf + kHalf + 1) << bucket) - 1;
}

void AppendBigEndian(std::string& bytes, uint64_t number, int size) {
  for (int shift = (size - 1) * 8; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
}

// Encodes as zig-zag with seven bits per byte; the ninth byte takes eight.
void AppendCount(std::string& bytes, int64_t number) {
  uint64_t rest = (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63);
  for (int size = 1; size < 9 && rest >= 0x80; ++size, rest >>= 7) bytes.push_back(static_cast<char>(rest | 0x80));
  bytes.push_back(static_cast<char>(rest));
}

std::string Base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t group_len = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) group = group << 8 | (i < group_len ? static_cast<uint8_t>(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) text.push_back(i <= group_len ? kDigits[group >> (18 - 6 * i) & 63] : '=');
  }
  return text;
}

}  // namespace

Histogram::Histogram() : counts_(IndexOf(kHighest) / kHalf * kHalf + kHalf) {}

void Histogram::Record(uint64_t value, uint64_t count) {
  const size_t index = IndexOf(std::min(value, kHighest));
  counts_[index] += count;
  count_ += count;
  last_ = std::max(last_, index);
}

void Histogram::Add(const Histogram& other) {
  for (size_t index = 0; index <= other.last_; ++index) counts_[index] += other.counts_[index];
  count_ += other.count_;
  last_ = std::max(last_, other.last_);
}

void Histogram::Clear() {
  std::fill_n(counts_.begin(), last_ + 1, 0);
  count_ = last_ = 0;
}

uint64_t Histogram::AtPercentile(double percentile) const {
  const double rank = std::max(1.0, std::ceil(percentile / 100 * static_cast<double>(count_)));
  uint64_t cumulative = 0;
  for (size_t index = 0; index <= last_; ++index) {
    cumulative += counts_[index];
    if (static_cast<double>(cumulative) >= rank) return LargestAt(index);
  }
  return 0;
}

std::string Histogram::Encoded() const {
  std::string counts;
  for (size_t index = 0; index <= last_ && count_ > 0; ++index) {
    if (counts_[index] > 0) {
      AppendCount(counts, static_cast<int64_t>(counts_[index]));
      continue;
    }
    // A run of zeros is encoded as a negative number. Zeros after the last count are omitted, so the run ends.
    const size_t from = index;
    while (counts_[index + 1] == 0) ++index;
    AppendCount(counts, -static_cast<int64_t>(index + 1 - from));
  }
  constexpr uint32_t kCookie = 0x1c849303 | 0x10;
  constexpr uint64_t kOne = 0x3ff0000000000000;  // The double 1.0: values are in the unit that they are in.
  std::string bytes;
  AppendBigEndian(bytes, kCookie, 4);
  AppendBigEndian(bytes, counts.size(), 4);
  AppendBigEndian(bytes, 0, 4);
  AppendBigEndian(bytes, kSignificantDigits, 4);
  AppendBigEndian(bytes, kLowest, 8);
  AppendBigEndian(bytes, kHighest, 8);
  AppendBigEndian(bytes, kOne, 8);
  return Base64(bytes + counts);
}
