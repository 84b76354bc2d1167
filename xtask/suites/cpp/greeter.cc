// gRPC C++ with its reflection (only v1alpha): a server for clients that discover it at run time.
// usage: greeter PORT

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "greeter.grpc.pb.h"

namespace {

suite::Reply MakeReply(const suite::Greeting& greeting) {
  suite::Detail detail;
  for (const auto& age : greeting.ages()) detail.add_names(age.first);
  suite::Reply reply;
  reply.set_text("hello " + (greeting.who_case() == suite::Greeting::kNumber ? std::to_string(greeting.number())
                                                                             : greeting.name()));
  reply.mutable_at()->set_seconds(1);
  reply.mutable_more()->PackFrom(detail);
  return reply;
}

class Greeter final : public suite::Greeter::Service {
  grpc::Status Greet(grpc::ServerContext* context, const suite::Greeting* greeting, suite::Reply* reply) override {
    if (greeting->name() == "nobody") return {grpc::StatusCode::FAILED_PRECONDITION, "there is nobody", "\xff"};
    context->AddInitialMetadata("greeter", "c++");
    context->AddTrailingMetadata("greeted-bin", std::string("\0\1", 2));
    *reply = MakeReply(*greeting);
    return grpc::Status::OK;
  }

  grpc::Status GreetAll(grpc::ServerContext*,
                        grpc::ServerReaderWriter<suite::Reply, suite::Greeting>* stream) override {
    suite::Greeting greeting;
    while (stream->Read(&greeting)) stream->Write(MakeReply(greeting));
    return grpc::Status::OK;
  }
};

}  // namespace

int main(int, char** arguments) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  Greeter greeter;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + arguments[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&greeter);
  builder.BuildAndStart()->Wait();
}
