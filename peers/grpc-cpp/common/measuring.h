#pragma once

#include "load_options.h"
#include "result.h"

// The measured time. Announces its start and end to observers of the process.
class Measuring {
 public:
  explicit Measuring(const LoadOptions& options) : announces_(options.announce) {}

  void Begin();

  // Has an effect only once.
  void End();

  bool has_started() const { return has_started_; }
  // CPU time from start to end.
  CpuTime cpu() const { return cpu_; }

 private:
  void Announce(const char* line) const;

  const bool announces_;
  bool has_started_ = false;
  bool has_ended_ = false;
  CpuTime before_{};
  CpuTime cpu_{};
};

// Runs `drive` for the whole run. If the warm-up is a separate run, runs that first: see "client-stream" in
// peers/README.md.
template <class DriveOnce>
LoadResult WithWarmUp(const LoadOptions& options, const DriveOnce& drive) {
  if (!options.EndsWithResponses() || options.warmup_ns == 0) return drive(options);
  LoadOptions measured = options;
  measured.warmup_ns = 0;
  LoadOptions warm_up = measured;
  warm_up.duration_ns = options.warmup_ns;
  warm_up.announce = false;
  drive(warm_up);
  return drive(measured);
}
