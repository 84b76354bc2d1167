#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// Maximum payload in either direction.
inline constexpr int kPayloadBytesMax = 64 << 20;

inline const std::vector<std::string_view> kCallTypes = {"unary", "client-stream", "server-stream", "bidi-stream",
                                                         "ping-pong"};
// A ping-pong is a bidi stream with one message in flight.
enum class CallType { kUnary, kClientStream, kServerStream, kBidiStream, kPingPong };

// Settings of a run of the load generator.
struct LoadOptions {
  std::string target;
  CallType call = CallType::kUnary;
  int size = 0;
  // The authority that TLS trusts, in PEM, if TLS is used; the server's name is localhost.
  std::optional<std::string> authority;
  uint32_t in_flight = 0;  // Over all connections.
  uint32_t connections = 1;
  uint32_t threads = 1;
  // Exactly one of these ends the run.
  std::optional<uint64_t> duration_ns;
  std::optional<uint64_t> total;
  uint64_t warmup_ns = 0;
  uint64_t timeout_ns = 10'000'000'000;
  // Index of the client's variant, if it has several.
  size_t variant = 0;
  bool announce = false;
  bool json = false;

  // Returns whether the measured time ends with the last response after `duration_ns`: see "client-stream" in
  // peers/README.md.
  bool EndsWithResponses() const { return call == CallType::kClientStream && duration_ns; }
};

// Flags of `load` that not every stack supports.
struct LoadFlags {
  // The default first; empty if there are no variants.
  std::vector<std::string_view> variants;
  bool threads = false;
  bool tls = false;
};

// Throws Misuse, also for a flag that `known` lacks.
LoadOptions ParseLoad(Flags flags, const LoadFlags& known);
