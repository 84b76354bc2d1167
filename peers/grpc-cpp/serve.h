#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// The default first. `callback` and `cq`, server and client on a processor each, operations a second, medians of three
// windows of 0.4 s in turns with this peer's client:
// - empty unary calls, 16, 64, 256 in flight: 39, 44, 33 and 50, 46, 36 thousand; one in flight: 7.1 and 5.9 thousand;
// - streams from the server, empty: 541 and 558 thousand; 1 KiB: 336 and 333; 64 KiB: 22 and 29;
// - streams both ways, empty: 141 and 256 thousand; 1 KiB: 84 and 181; 64 KiB: 14 and 17.
// `cq` would be the default, but with 16 connections and a stream of empty messages from the server on each, all windows
// had streams that nothing came on for 3 s; `callback` sends 571 thousand a second there. A stack is not measured by
// a server that stops.
inline constexpr std::string_view kCompletionQueues = "cq";
inline const std::vector<std::string_view> kServerVariants = {"callback", kCompletionQueues};

// What a server is asked to be.
struct ServeOptions {
  std::vector<std::string> listen;
  size_t variant = 0;  // Of kServerVariants.
  // Of completion queues, each with its thread.
  std::optional<uint32_t> threads;
};

// Processors that this process may use: as many completion queues has the server that is not told a number.
size_t ProcessorsAllowed();

// Throws Misuse.
ServeOptions ParseServe(Flags flags);

// Serves BenchmarkService until SIGTERM or SIGINT; the exit code.
int Serve(const ServeOptions& options);
