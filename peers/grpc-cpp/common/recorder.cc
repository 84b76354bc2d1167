#include "recorder.h"

#include <algorithm>

namespace {

constexpr int kUnknown = 2;

constexpr std::array<const char*, Recorder::kCodes> kCodeNames = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

size_t CodeIndex(int code) {
  const bool is_known = code >= 0 && static_cast<size_t>(code) < kCodeNames.size();
  return static_cast<size_t>(is_known ? code : kUnknown);
}

}  // namespace

const char* CodeName(int code) { return kCodeNames[CodeIndex(code)]; }

void Recorder::Record(uint64_t latency_ns, uint64_t count, uint64_t at_ns) {
  if (count == 0) return;
  latencies_.Record(latency_ns, count);
  min_ns_ = std::min(min_ns_, latency_ns);
  max_ns_ = std::max(max_ns_, latency_ns);
  sum_ns_ += latency_ns * count;
  NoteSpike(latency_ns, at_ns);
}

void Recorder::RecordPace(uint64_t elapsed_ns, uint64_t count, uint64_t at_ns) {
  if (count == 0) return;
  pace_.messages += count;
  pace_.sum_ns += elapsed_ns;
  pace_.gap_max_ns = std::max(pace_.gap_max_ns, elapsed_ns);
  pace_.messages_per_reading = std::max(pace_.messages_per_reading, count);
  NoteSpike(elapsed_ns, at_ns);
}

void Recorder::NoteSpike(uint64_t took_ns, uint64_t at_ns) {
  if (spikes_.size() < kSpikesMax || took_ns > spikes_.back().took_ns) Insert({took_ns, at_ns});
}

void Recorder::Error(int code) { ++errors_[CodeIndex(code)]; }

void Recorder::Add(const Recorder& other) {
  latencies_.Add(other.latencies_);
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
  pace_.messages += other.pace_.messages;
  pace_.sum_ns += other.pace_.sum_ns;
  pace_.gap_max_ns = std::max(pace_.gap_max_ns, other.pace_.gap_max_ns);
  pace_.messages_per_reading = std::max(pace_.messages_per_reading, other.pace_.messages_per_reading);
  calls_ += other.calls_;
  for (size_t code = 0; code < kCodes; ++code) errors_[code] += other.errors_[code];
  for (const Spike& spike : other.spikes_) Insert(spike);
}

void Recorder::Clear() {
  latencies_.Clear();
  min_ns_ = UINT64_MAX;
  max_ns_ = sum_ns_ = calls_ = 0;
  pace_ = {};
  errors_.fill(0);
  spikes_.clear();
}

uint64_t Recorder::PercentileNs(double percentile) const {
  return std::clamp(latencies_.AtPercentile(percentile), min_ns_, max_ns_);
}

void Recorder::Insert(Spike spike) {
  const auto smaller = [](const Spike& a, const Spike& b) { return a.took_ns > b.took_ns; };
  spikes_.insert(std::upper_bound(spikes_.begin(), spikes_.end(), spike, smaller), spike);
  if (spikes_.size() > kSpikesMax) spikes_.pop_back();
}
