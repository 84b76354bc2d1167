#pragma once

#include <algorithm>
#include <cstdint>

// A stream of requests ends with so many bytes of payload or so many messages, and another one follows: what is handed
// over waits in Qt's memory until it can be sent.
inline constexpr uint64_t kStreamBytes = 32 << 20;
inline constexpr uint64_t kStreamMessages = 16384;

// So much is handed over from one turn of the event loop to the next.
inline constexpr uint64_t kTurnBytes = 64 << 10;
inline constexpr uint64_t kTurnMessages = 64;

// How many messages of `size` bytes of payload are within both limits, one at least.
inline uint64_t MessagesOf(uint64_t bytes, uint64_t messages, int size) {
  return std::clamp<uint64_t>(bytes / static_cast<uint64_t>(std::max(size, 1)), 1, messages);
}
