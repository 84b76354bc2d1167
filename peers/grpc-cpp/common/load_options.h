#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// Payloads of both directions are bounded by this.
inline constexpr int kPayloadBytesMax = 64 << 20;

inline const std::vector<std::string_view> kCallTypes = {"unary", "client-stream", "server-stream", "bidi-stream",
                                                         "ping-pong"};
// A ping-pong is a bidi stream with one message under way.
enum class CallType { kUnary, kClientStream, kServerStream, kBidiStream, kPingPong };

// What a run of the load generator is asked to do.
struct LoadOptions {
  std::string target;
  CallType call = CallType::kUnary;
  int size = 0;
  // Whom TLS trusts, in PEM, where it is used; the server's name is localhost.
  std::optional<std::string> authority;
  uint32_t in_flight = 0;  // Over all connections.
  uint32_t connections = 1;
  uint32_t threads = 1;
  // One of the two ends the run.
  std::optional<uint64_t> duration_ns;
  std::optional<uint64_t> total;
  uint64_t warmup_ns = 0;
  uint64_t timeout_ns = 10'000'000'000;
  // Which of the client's kinds, if it has several.
  size_t variant = 0;
  bool announce = false;
  bool json = false;

  // The measured time ends with the last answer behind `duration_ns`: see "client-stream" in peers/README.md.
  bool EndsWithAnswers() const { return call == CallType::kClientStream && duration_ns; }
};

// What not every stack has of the flags of `load`.
struct LoadFlags {
  // The default first; empty: there is no choice.
  std::vector<std::string_view> variants;
  bool threads = false;
  bool tls = false;
};

// Throws Misuse, also for a flag that `known` has not.
LoadOptions ParseLoad(Flags flags, const LoadFlags& known);
