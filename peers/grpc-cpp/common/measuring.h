#pragma once

#include "load_options.h"
#include "result.h"

// The measured time: whoever wants to look at the process is told of its two ends.
class Measuring {
 public:
  explicit Measuring(const LoadOptions& options) : announces_(options.announce) {}

  void Begin();

  // Does nothing the second time.
  void End();

  bool begun() const { return begun_; }
  // Processor time from its beginning to its end.
  CpuTime cpu() const { return cpu_; }

 private:
  void Announce(const char* line) const;

  const bool announces_;
  bool begun_ = false;
  bool has_ended_ = false;
  CpuTime before_{};
  CpuTime cpu_{};
};

// Has `drive` do the whole run, or, where the warm-up is a run of its own, that first: see "client-stream" in
// peers/README.md.
template <class DriveOnce>
LoadResult WithWarmUp(const LoadOptions& options, const DriveOnce& drive) {
  if (!options.EndsWithAnswers() || options.warmup_ns == 0) return drive(options);
  LoadOptions measured = options;
  measured.warmup_ns = 0;
  LoadOptions warm_up = measured;
  warm_up.duration_ns = options.warmup_ns;
  warm_up.announce = false;
  drive(warm_up);
  return drive(measured);
}
