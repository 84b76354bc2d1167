#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/flags.h"

// The default first: the faster of the two servers. The columns are thousand operations per second of `callback` and
// `cq`, and their ratio. Server and client run on one CPU each, with this peer's client; medians of four interleaved
// windows of 0.7 s. Ratios from 0.8 to 1.2 are noise: windows of one server differ by more.
//
// ```text
//                                    one connection        16 connections
// unary, empty      1 in flight    5.9    5.8  0.98
//                  16             46.1   49.7  1.08      35.6   36.4  1.02
//                  64             43.4   51.5  1.19      43.5   44.7  1.03
//                 256             43.2   42.0  0.97      45.3   42.5  0.94
// from the server   0 B          545    537    0.99     535    539    1.01
// (a stream each)   1 KiB        343    364    1.06     390    369    0.95
//                  64 KiB         24.0   38.0  1.58      29.9   25.4  0.85
// from the client   0 B          583    579    0.99     559    566    1.01
//                   1 KiB        366    345    0.94     360    373    1.04
//                  64 KiB         22.4   36.4  1.63      29.4   31.6  1.08
// both ways         0 B          113    264    2.33     143    226    1.58
//                   1 KiB         79.2  168    2.12      87.0  156    1.80
//                  64 KiB         15.0   24.5  1.63      14.6   14.1  0.97
// ```
inline constexpr std::string_view kCompletionQueues = "cq";
inline const std::vector<std::string_view> kServerVariants = {kCompletionQueues, "callback"};

// Settings of a server.
struct ServeOptions {
  std::vector<std::string> listen;
  size_t variant = 0;  // Of kServerVariants.
  // Certificate and key for TLS, in PEM; both or neither.
  std::string certificate;
  std::string key;
  // Number of completion queues, each with its thread.
  std::optional<uint32_t> threads;
};

// Returns the number of CPUs that this process may use, which is the default number of completion queues.
size_t ProcessorsAllowed();

// Throws Misuse.
ServeOptions ParseServe(Flags flags);

// Serves BenchmarkService until SIGTERM or SIGINT and returns the exit code.
int Serve(const ServeOptions& options);
