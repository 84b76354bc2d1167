#pragma once

#include <algorithm>
#include <cstdint>

#include "load_options.h"

// Returns how many messages of a bidirectional stream may await their replies, limited by payload bytes and by number.
// Streams of the largest messages are pipelined too.
inline uint64_t Window(const LoadOptions& options) {
  constexpr uint64_t kOutstandingBytes = 1 << 20;
  constexpr uint64_t kOutstandingMessagesMin = 2;
  constexpr uint64_t kOutstandingMessagesMax = 4096;
  if (options.call == CallType::kPingPong) return 1;
  const uint64_t fitting = kOutstandingBytes / static_cast<uint64_t>(std::max(options.size, 1));
  return std::clamp(fitting, kOutstandingMessagesMin, kOutstandingMessagesMax);
}
