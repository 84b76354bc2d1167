#pragma once

#include <string_view>
#include <vector>

#include "common/load_options.h"

// The default first.
inline const std::vector<std::string_view> kClientVariants = {"own", "distinct", "shared", "one"};
enum class ClientVariant { kOwn, kDistinct, kShared, kOne };

inline const LoadFlags kLoadFlags = {kClientVariants, true, true};

// Drives BenchmarkService in a closed loop, prints the result and returns the exit code. Throws without a result.
int RunLoad(const LoadOptions& options);
