#pragma once

#include <algorithm>
#include <cstdint>

// Maximum payload bytes and messages of a stream of requests, after which another one follows. Messages handed over
// wait in Qt's memory until they can be sent.
inline constexpr uint64_t kStreamBytes = 32 << 20;
inline constexpr uint64_t kStreamMessages = 16384;

// Maximum handed over per turn of the event loop.
inline constexpr uint64_t kTurnBytes = 64 << 10;
inline constexpr uint64_t kTurnMessages = 64;

// Returns how many messages of `size` payload bytes are within both limits, at least one.
inline uint64_t MessagesOf(uint64_t bytes, uint64_t messages, int size) {
  return std::clamp<uint64_t>(bytes / static_cast<uint64_t>(std::max(size, 1)), 1, messages);
}
