#pragma once

#include <algorithm>
#include <cstdint>

#include "load_options.h"

// How many messages of a stream both ways may await their echo: so many bytes of payload, and so many messages. A
// stream of the largest is pipelined, too.
inline uint64_t Window(const LoadOptions& options) {
  constexpr uint64_t kOutstandingBytes = 1 << 20;
  constexpr uint64_t kOutstandingMessagesMin = 2;
  constexpr uint64_t kOutstandingMessagesMax = 4096;
  if (options.call == CallType::kPingPong) return 1;
  const uint64_t fitting = kOutstandingBytes / static_cast<uint64_t>(std::max(options.size, 1));
  return std::clamp(fitting, kOutstandingMessagesMin, kOutstandingMessagesMax);
}
