#include "channels.h"

#include <grpcpp/grpcpp.h>

#include <stdexcept>

#include "common/recorder.h"
#include "messages.h"
#include "settings.h"

namespace {

using grpc::testing::BenchmarkService;
using Deadline = std::chrono::system_clock::time_point;

Deadline After(uint64_t ns) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(ns));
}

// Returns false if the first attempt to connect fails, or at the deadline.
bool WaitForConnection(grpc::Channel& channel, Deadline deadline) {
  while (true) {
    const grpc_connectivity_state state = channel.GetState(true);
    if (state == GRPC_CHANNEL_READY) return true;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
    if (!channel.WaitForStateChange(state, deadline)) return false;
  }
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const LoadOptions& options) {
  if (!options.authority) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = *options.authority;
  return grpc::SslCredentials(tls);
}

}  // namespace

Stubs Connect(const LoadOptions& options) {
  const auto variant = static_cast<ClientVariant>(options.variant);
  grpc::ChannelArguments arguments;
  ApplySettings(arguments);
  if (options.authority) arguments.SetSslTargetNameOverride("localhost");
  if (variant == ClientVariant::kOwn) arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const std::shared_ptr<grpc::ChannelCredentials> credentials = Credentials(options);
  const uint32_t count = variant == ClientVariant::kOne ? 1 : options.connections;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (uint32_t i = 0; i < count; ++i) {
    // If an argument is set twice, the first value wins.
    grpc::ChannelArguments channel_arguments = arguments;
    if (variant == ClientVariant::kDistinct) channel_arguments.SetInt("peer.channel_number", static_cast<int>(i));
    channels.push_back(grpc::CreateCustomChannel(options.target, credentials, channel_arguments));
    // Starts connecting.
    channels.back()->GetState(true);
  }
  const Deadline deadline = After(options.timeout_ns);
  Stubs stubs;
  for (const auto& channel : channels) {
    stubs.push_back(BenchmarkService::NewStub(channel));
    if (WaitForConnection(*channel, deadline)) continue;
    // Unlike a channel, a call returns the reason.
    FirstCall(options, *stubs.back());
    throw std::runtime_error("not all connections to " + options.target + " were made at the first try");
  }
  return stubs;
}

void FirstCall(const LoadOptions& options, BenchmarkService::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(After(options.timeout_ns));
  grpc::testing::SimpleResponse response;
  const grpc::Status status = stub.UnaryCall(&context, MakeRequest(options.size, options.size), &response);
  const std::string failed =
      options.target + ": the first call, grpc.testing.BenchmarkService/UnaryCall, ended with ";
  if (!status.ok()) {
    throw std::runtime_error(failed + CodeName(status.error_code()) + ": " + status.error_message());
  }
  const std::string wrong = WrongSize(response, options.size);
  if (!wrong.empty()) throw std::runtime_error(failed + "DATA_LOSS: " + wrong);
}
