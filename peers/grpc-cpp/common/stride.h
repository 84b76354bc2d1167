#pragma once

#include <cstdint>

// Returns how many messages of `size` payload bytes share one reading of the clock on a stream.
inline uint64_t Stride(int size) { return size < 4096 ? 16 : 1; }
