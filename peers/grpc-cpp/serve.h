#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// The default first. `callback` and `cq`, server and client on a processor each, operations a second, medians of three
// windows of 0.7 s in turns with this peer's client:
// - empty unary calls, 16, 64, 256 in flight: 43, 44, 36 and 42, 46, 38 thousand; one in flight: 5.3 and 5.5 thousand;
// - streams from the server, empty: 470 and 487 thousand; 1 KiB: 328 and 316; 64 KiB: 27 and 38;
// - streams both ways, empty: 124 and 259 thousand; 1 KiB: 83 and 177; 64 KiB: 12 and 14.
// `cq` would be the default, but with 16 connections and a stream of empty messages from the server on each, all windows
// had calls that failed (this peer's client; ours had a tenth of the messages of `callback`), where `callback` sent 592
// thousand a second. A stack is not measured by a server that stops.
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
