#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// The default first.
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
