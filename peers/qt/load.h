#pragma once

#include "common/load_options.h"

// Throws Misuse, also for targets that Qt GRPC does not support.
LoadOptions ParseQtLoad(Flags flags);

// Drives BenchmarkService in a closed loop, prints the result and returns the exit code. Throws without a result.
int RunLoad(const LoadOptions& options);
