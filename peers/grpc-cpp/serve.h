#pragma once

#include <string>
#include <vector>

// Serves BenchmarkService until SIGTERM or SIGINT; the exit code.
int Serve(const std::vector<std::string>& words);
