#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What a run of the load generator is asked to do.
struct Load {
  std::string target;
  std::string call = "unary";
  int size_bytes = 0;
  int in_flight = 1;  // Over all connections.
  int connections = 1;
  std::optional<std::chrono::nanoseconds> duration;
  std::optional<uint64_t> total;
  std::chrono::nanoseconds warmup = std::chrono::seconds(1);
  bool json = false;
};

// Throws std::invalid_argument for a command line that makes no sense.
Load ParseLoad(const std::vector<std::string>& words);

// Drives BenchmarkService in a closed loop, prints what it found; the exit code.
int RunLoad(const Load& load);
