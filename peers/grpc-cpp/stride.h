#pragma once

#include <cstdint>

#include "recorder.h"

// How many messages of `size` payload bytes share one reading of the clock on a stream.
inline uint64_t Stride(int size) { return size < 4096 ? 16 : 1; }

// Puts the time of a stride down to its messages: what it took beyond the pace of the fastest stride so far is put down
// to one message, so that the mean is exact and a stall shows as what it is.
class Pace {
 public:
  void Record(Recorder& recorder, uint64_t elapsed_ns, uint64_t count, uint64_t at_ns) {
    if (count == 0) return;
    const uint64_t each_ns = elapsed_ns / count;
    fastest_ns_ = each_ns < fastest_ns_ ? each_ns : fastest_ns_;
    recorder.Record(fastest_ns_, count - 1, at_ns);
    recorder.Record(elapsed_ns - fastest_ns_ * (count - 1), 1, at_ns);
  }

 private:
  uint64_t fastest_ns_ = UINT64_MAX;
};
