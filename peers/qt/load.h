#pragma once

#include "common/load_options.h"

// Throws Misuse, also for targets that Qt GRPC does not reach.
LoadOptions ParseQtLoad(Flags flags);

// Drives BenchmarkService in a closed loop, prints what it found; the exit code. Throws when there is nothing to say.
int RunLoad(const LoadOptions& options);
