#include "serve.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "last_log.h"
#include "common/misuse.h"
#include "service.h"
#include "settings.h"

namespace {

// Grace period for calls in flight. Short, because endless streams last until they are cancelled.
constexpr auto kGrace = std::chrono::milliseconds(100);

constexpr std::string_view kUnix = "unix:";

constexpr uint64_t kThreadsMax = 1024;

std::unique_ptr<Service> MakeService(const ServeOptions& options) {
  if (kServerVariants[options.variant] != kCompletionQueues) return MakeCallbackService();
  return MakeCompletionQueueService(options.threads.value_or(ProcessorsAllowed()));
}

std::shared_ptr<grpc::ServerCredentials> Credentials(const ServeOptions& options) {
  if (options.certificate.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({options.key, options.certificate});
  return grpc::SslServerCredentials(tls);
}

bool IsUnixPath(const std::string& address) { return address.rfind(kUnix, 0) == 0; }

// gRPC removes an existing socket at a path, even of a running server. This check prevents it.
void RefuseTakenPath(const std::string& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string path = address.substr(kUnix.size());
  if (path.size() >= sizeof(name.sun_path)) throw std::runtime_error("failed to listen on " + address + ": the path is too long");
  path.copy(name.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_taken = connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  close(fd);
  if (is_taken) throw std::runtime_error("failed to listen on " + address + ": Address already in use");
}

// Returns the address with the bound port.
std::string WithPort(const std::string& address, int port) {
  if (address.rfind("unix", 0) == 0) return address;
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

// Blocks the signals before gRPC starts its threads, so that none of them handles them.
sigset_t BlockStopSignals() {
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  return stop_signals;
}

void CheckAddress(const std::string& address) {
  const bool is_unix = address.rfind("unix:", 0) == 0 || address.rfind("unix-abstract:", 0) == 0;
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    throw Misuse("`--listen " + address + "`: HOST:PORT, unix:PATH or unix-abstract:NAME is wanted");
  }
  if (!is_unix) ParseNumber("--listen " + address, address.substr(colon + 1), 0, 65535);
}

}  // namespace

ServeOptions ParseServe(Flags flags) {
  ServeOptions options;
  while (const auto flag = flags.Next()) {
    if (*flag == "--listen") {
      options.listen.push_back(flags.Value(*flag));
      CheckAddress(options.listen.back());
    } else if (*flag == "--variant") {
      options.variant = ParseChoice(*flag, flags.Value(*flag), kServerVariants);
    } else if (*flag == "--cert") {
      options.certificate = ReadFile(*flag, flags.Value(*flag));
    } else if (*flag == "--key") {
      options.key = ReadFile(*flag, flags.Value(*flag));
    } else if (*flag == "--threads") {
      options.threads = static_cast<uint32_t>(ParseNumber(*flag, flags.Value(*flag), 1, kThreadsMax));
    } else {
      throw Misuse("unknown flag `" + *flag + "` of serve; use --listen, --variant, --cert, --key or --threads");
    }
  }
  if (options.threads && kServerVariants[options.variant] != kCompletionQueues) {
    throw Misuse("`--threads` is not supported by this variant of the server; use `cq`");
  }
  if (options.certificate.empty() != options.key.empty()) throw Misuse("`--cert` and `--key` go together");
  if (options.listen.empty()) throw Misuse("serve wants --listen ADDR");
  return options;
}

int Serve(const ServeOptions& options) {
  const sigset_t stop_signals = BlockStopSignals();
  const LastLog log;
  // Never destroyed: their threads run until the process ends.
  Service* const service = MakeService(options).release();

  grpc::ServerBuilder builder;
  ApplySettings(builder);
  const std::shared_ptr<grpc::ServerCredentials> credentials = Credentials(options);
  // The builder writes the bound ports here.
  std::vector<int> ports(options.listen.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    if (IsUnixPath(options.listen[i])) RefuseTakenPath(options.listen[i]);
    builder.AddListeningPort(options.listen[i], credentials, &ports[i]);
  }
  service->Register(builder);
  grpc::Server* const server = builder.BuildAndStart().release();
  for (size_t i = 0; i < ports.size(); ++i) {
    if (server == nullptr && ports[i] <= 0) {
      throw std::runtime_error("failed to listen on " + options.listen[i] + ": " + log.Reason());
    }
  }
  if (server == nullptr) throw std::runtime_error("the server does not start: " + log.Reason());
  service->Start();

  for (size_t i = 0; i < ports.size(); ++i) std::printf("listening on %s\n", WithPort(options.listen[i], ports[i]).c_str());
  std::fflush(stdout);

  int signal_number = 0;
  sigwait(&stop_signals, &signal_number);
  server->Shutdown(std::chrono::system_clock::now() + kGrace);
  for (const std::string& address : options.listen) {
    if (IsUnixPath(address)) unlink(address.c_str() + kUnix.size());
  }
  return 0;
}
