#include "serve.h"

#include <grpcpp/grpcpp.h>
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "grpc/testing/benchmark_service.grpc.pb.h"

namespace {

using grpc::testing::BenchmarkService;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;

// The callback interface: gRPC C++'s own threads run the handler.
class Worker final : public BenchmarkService::CallbackService {
  grpc::ServerUnaryReactor* UnaryCall(grpc::CallbackServerContext* context, const SimpleRequest* request,
                                      SimpleResponse* response) override {
    // None is no payload, so that an empty message is empty.
    if (request->response_size() > 0) {
      response->mutable_payload()->mutable_body()->resize(request->response_size());
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

int Serve(const std::vector<std::string>& words) {
  std::string listen = "127.0.0.1:50051";
  if (words.size() == 2 && words[0] == "--listen") {
    listen = words[1];
  } else if (!words.empty()) {
    throw std::invalid_argument("serve knows --listen ADDR only");
  }

  // Blocked before gRPC starts its threads, so that this thread alone takes the signal.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  Worker worker;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&worker);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) throw std::runtime_error("cannot listen on " + listen);
  std::printf("gRPC C++ %s serves on %s\n", grpc::Version().c_str(), listen.c_str());
  std::fflush(stdout);

  int signal_number = 0;
  sigwait(&ending, &signal_number);
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  return 0;
}
