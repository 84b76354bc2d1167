#include "load_options.h"

#include <algorithm>

#include "misuse.h"

namespace {

constexpr uint64_t kDurationNsDefault = 10'000'000'000;
constexpr uint64_t kWarmupNsDefault = 1'000'000'000;
constexpr uint32_t kInFlightDefault = 64;
constexpr uint64_t kCountMax = 1'000'000;
constexpr uint64_t kThreadsMax = 1024;

void SetDefaults(LoadOptions& options, std::optional<uint64_t> warmup_ns) {
  if (options.in_flight == 0) {
    const bool is_unary = options.call == CallType::kUnary;
    options.in_flight = is_unary ? std::max(kInFlightDefault, options.connections) : options.connections;
  }
  // A thread without a call would only wait.
  options.threads = std::min(options.threads, options.in_flight);
  options.warmup_ns = warmup_ns.value_or(options.total ? 0 : kWarmupNsDefault);
  if (!options.total && !options.duration_ns) options.duration_ns = kDurationNsDefault;
}

}  // namespace

LoadOptions ParseLoad(Flags flags, const LoadFlags& known) {
  LoadOptions options;
  std::optional<uint64_t> warmup_ns;
  while (const auto arg = flags.Next()) {
    const std::string& flag = *arg;
    const auto number = [&](uint64_t min, uint64_t max) { return ParseNumber(flag, flags.Value(flag), min, max); };
    const auto duration = [&] { return ParseDuration(flag, flags.Value(flag)); };
    const auto choice = [&](const auto& choices) { return ParseChoice(flag, flags.Value(flag), choices); };
    if (flag == "--call") {
      options.call = static_cast<CallType>(choice(kCallTypes));
    } else if (flag == "--size") {
      options.size = static_cast<int>(number(0, kPayloadBytesMax));
    } else if (flag == "-c") {
      options.in_flight = static_cast<uint32_t>(number(1, kCountMax));
    } else if (flag == "--connections") {
      options.connections = static_cast<uint32_t>(number(1, kCountMax));
    } else if (known.threads && flag == "--threads") {
      options.threads = static_cast<uint32_t>(number(1, kThreadsMax));
    } else if (flag == "-z") {
      options.duration_ns = duration();
    } else if (flag == "-n") {
      options.total = number(1, UINT64_MAX - 1);
    } else if (flag == "--warmup") {
      warmup_ns = duration();
    } else if (flag == "--timeout") {
      options.timeout_ns = duration();
    } else if (!known.variants.empty() && flag == "--variant") {
      options.variant = choice(known.variants);
    } else if (known.tls && flag == "--cacert") {
      options.authority = ReadFile(flag, flags.Value(flag));
    } else if (flag == "--announce") {
      options.announce = true;
    } else if (flag == "-O") {
      options.json = choice(std::vector<std::string_view>{"text", "json"}) == 1;
    } else if (flag.empty() || flag[0] == '-' || !options.target.empty()) {
      throw Misuse("unknown flag `" + flag + "` of load");
    } else {
      options.target = flag;
    }
  }
  if (options.target.empty()) throw Misuse("load wants a TARGET");
  if (options.duration_ns && options.total) throw Misuse("`-z` and `-n`: one of them ends the run, not both");
  SetDefaults(options, warmup_ns);
  if (options.connections > options.in_flight) {
    throw Misuse("`--connections` are more than the calls in flight (`-c`): some would stay idle");
  }
  return options;
}
