#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "load_options.h"
#include "recorder.h"

struct CpuTime {
  double user_ns;
  double system_ns;
};

// The result of one run of the load generator.
struct LoadResult {
  Recorder recorder;
  // Start of the measured time, since 1970.
  std::chrono::nanoseconds started;
  uint64_t duration_ns;
  uint64_t drain_ns;
  CpuTime cpu;
  // Message of the first failed call; empty if none failed.
  std::string first_failure;
  // Connections in the kernel's tables.
  std::optional<uint32_t> established;
};

// The schema thalweg.load/3.
std::string Json(const LoadOptions& options, const LoadResult& result);

// Formats the result for people.
std::string Text(const LoadOptions& options, const LoadResult& result);
