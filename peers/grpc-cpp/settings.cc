// The following settings were measured and stay at gRPC's defaults. Measured on streams of messages of 1.5 MB and 4 MiB
// and on empty unary calls, pinned to one CPU per side on a busy machine:
//
// - GRPC_ARG_HTTP2_BDP_PROBE is on: without it, streams of large messages run at half the rate, however large the fixed
//   windows (GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES of 4 and 16 MiB). With it, larger initial windows gain nothing;
// - GRPC_ARG_HTTP2_MAX_FRAME_SIZE of 1 and 16 MiB gains nothing beyond noise;
// - GRPC_ARG_TCP_READ_CHUNK_SIZE of 1 MiB costs CPU time;
// - GRPC_ARG_OPTIMIZATION_TARGET, "throughput" or "latency", makes no difference beyond noise;
// - GRPC_ARG_ENABLE_CHANNELZ and GRPC_ARG_ENABLE_RETRIES off: the same.
//
// gRPC always sets TCP_NODELAY, and compresses nothing unless asked to.


#include "settings.h"

#include <google/protobuf/stubs/common.h>

#include <iterator>
#include <string>

#include "common/program.h"
#include "load.h"
#include "serve.h"
#include "write_batch.h"

namespace {

// A channel argument of one side or both.
struct ChannelSetting {
  bool server;
  bool client;
  const char* name;
  const char* argument;
  int value;
  const char* display;
  const char* why;
};

constexpr ChannelSetting kChannelSettings[] = {
    {true, true, "largest message received", GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1, "no limit",
     "the default is 4 MiB"},
    {true, true, "filters of a call", GRPC_ARG_MINIMAL_STACK, 1, "the fewest",
     "without those for message sizes, compression and the like an empty unary call costs the client a tenth less"},
    {false, true, "deadlines", GRPC_ARG_ENABLE_DEADLINE_CHECKS, 1, "checked",
     "the first call has one; the fewest filters have none"},
    {true, false, "sharing a port", GRPC_ARG_ALLOW_REUSEPORT, 0, "off",
     "else the kernel would share connections with a second server on the same port"},
};

// A default of gRPC, or something that cannot be set.
struct DefaultSetting {
  const char* side;
  std::string name;
  std::string value;
  std::string why;
};

std::string Versions() {
  return std::string("g++ ") + __VERSION__ + ", " + PEER_FLAGS + "; gRPC " + grpc::Version() +
         " and Protobuf " + google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION) +
         " as shared libraries of the system";
}

const std::vector<DefaultSetting>& Defaults() {
  static const std::vector<DefaultSetting> lines = {
      {"server", "threads of `callback`", "gRPC's own: half the machine's processors, 2 to 16",
       "gRPC has no option for it"},
      {"server",
       "completion queues and threads of `cq`", std::to_string(ProcessorsAllowed()) + ", one thread for each queue",
       "one for each processor of the process; --threads says otherwise"},
      {"client", "completion queues and threads", std::to_string(LoadOptions().threads) + ", one thread for each queue",
       "one costs the least; --threads says otherwise"},
      {"both", std::string("stream window (") + GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES + ")",
       "64 KiB, then what the estimate says",
       "the default; larger ones gained nothing"},
      {"both", std::string("estimate of the window (") + GRPC_ARG_HTTP2_BDP_PROBE + ")", "on",
       "the default; without it large messages are slower by half"},
      {"both", "connection window", "64 KiB, then what the estimate says", "gRPC has no option for it"},
      {"both", std::string("largest frame (") + GRPC_ARG_HTTP2_MAX_FRAME_SIZE + ")",
       "16 KiB, then what the estimate says",
       "the default; 1 and 16 MiB gained nothing"},
      {"both", std::string("write buffer (") + GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE + ")", "64 KiB", "the default"},
      {"both",
       "flushing of stream writers (set_buffer_hint)", WriteBatch::Rule(), "a write without the hint is a system call"},
      {"both", std::string("read chunk (") + GRPC_ARG_TCP_READ_CHUNK_SIZE + ")", "8 KiB, adapted by gRPC",
       "the default; 1 MiB cost processor time"},
      {"both", std::string("optimisation target (") + GRPC_ARG_OPTIMIZATION_TARGET + ")", "blend",
       "the default; the others made no difference"},
      {"both", std::string("retries (") + GRPC_ARG_ENABLE_RETRIES + ")", "on", "the default; off made no difference"},
      {"both", std::string("channelz (") + GRPC_ARG_ENABLE_CHANNELZ + ")", "on",
       "the default; off made no difference"},
      {"both", "TCP_NODELAY", "on", "gRPC always sets it"},
      {"both", "compression", "off", "the default"},
      {"both", "keep-alive", "client off, server after 2 h", "the default"},
      {"both", "log", "off", "kept for the reason of a failure"},
      {"both", "payload copies", "one to encode, one to decode",
       "Protobuf of C++ has bytes fields as std::string, without cords in this version"},
      {"both", "messages", "those of a run, and of the server's calls, made once and used again", ""},
      {"both", "transport", "plain HTTP/2; TLS with --cert and --cacert", "as in all stacks; TLS is Debian's OpenSSL, not BoringSSL"},
      {"both", "allocator", "the system's", "the default"},
      {"both", "build", Versions(), "Debian's own flags for gRPC and Protobuf"},
  };
  return lines;
}

}  // namespace

void ApplySettings(grpc::ServerBuilder& builder) {
  for (const ChannelSetting& setting : kChannelSettings) {
    if (setting.server) builder.AddChannelArgument(setting.argument, setting.value);
  }
}

void ApplySettings(grpc::ChannelArguments& arguments) {
  for (const ChannelSetting& setting : kChannelSettings) {
    if (setting.client) arguments.SetInt(setting.argument, setting.value);
  }
}

void PrintSettings() {
  for (const ChannelSetting& setting : kChannelSettings) {
    const char* side = !setting.client ? "server" : !setting.server ? "client" : "both";
    PrintSetting(side, std::string(setting.name) + " (" + setting.argument + ")", setting.display, setting.why);
  }
  for (const DefaultSetting& line : Defaults()) PrintSetting(line.side, line.name, line.value, line.why);
}
