#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// The default first.
inline const std::vector<std::string_view> kServerVariants = {"callback", "cq"};

// What a server is asked to be.
struct ServeOptions {
  std::vector<std::string> listen;
  size_t variant = 0;  // Of kServerVariants.
};

// Throws Misuse.
ServeOptions ParseServe(Flags flags);

// Serves BenchmarkService until SIGTERM or SIGINT; the exit code.
int Serve(const ServeOptions& options);
