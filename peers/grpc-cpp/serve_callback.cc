// The callback interface: gRPC's own threads run the reactors. Their number is half the machine's CPUs, from 2 to 16,
// and no setting changes it (thread limits of a ResourceQuota are for the synchronous interface).

#include <mutex>
#include <utility>
#include <vector>

#include "echo.h"
#include "grpc/testing/benchmark_service.grpc.pb.h"
#include "messages.h"
#include "service.h"
#include "write_batch.h"

namespace {

using grpc::testing::BenchmarkService;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;

// The messages of a unary call, reused by later calls, so that a payload of the right size is already there.
class ReusedMessages final : public grpc::MessageHolder<SimpleRequest, SimpleResponse> {
 public:
  ReusedMessages() {
    set_request(&request_);
    set_response(&response_);
  }

  static ReusedMessages* Take() {
    auto& free = Free();
    if (free.empty()) return new ReusedMessages;
    ReusedMessages* messages = free.back();
    free.pop_back();
    return messages;
  }

  void Release() override { Free().push_back(this); }

 private:
  // Per thread; in total, as many as calls were ever in flight at once.
  static std::vector<ReusedMessages*>& Free() {
    static thread_local std::vector<ReusedMessages*> free;
    return free;
  }

  SimpleRequest request_;
  SimpleResponse response_;
};

class Reusing final : public grpc::MessageAllocator<SimpleRequest, SimpleResponse> {
  grpc::MessageHolder<SimpleRequest, SimpleResponse>* AllocateMessages() override { return ReusedMessages::Take(); }
};

// Sends one response after the requests, of the size that the last one asks for.
class FromClient final : public grpc::ServerReadReactor<SimpleRequest> {
 public:
  explicit FromClient(SimpleResponse* response) : response_(response) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(MakeResponse(response_size_, response_));
    response_size_ = request_.response_size();
    StartRead(&request_);
  }

  void OnDone() override { delete this; }

 private:
  SimpleRequest request_;
  SimpleResponse* response_;
  int response_size_ = 0;
};

// Repeats the same response until the call is cancelled.
class FromServer final : public grpc::ServerWriteReactor<SimpleResponse> {
 public:
  explicit FromServer(int size) : size_(size) {
    const grpc::Status status = MakeResponse(size, &response_);
    if (status.ok()) {
      // Sent separately: see WriteBatch.
      StartSendInitialMetadata();
    } else {
      Finish(status);
    }
  }

  void OnSendInitialMetadataDone(bool ok) override { OnWriteDone(ok); }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    Write();
  }

  void OnDone() override { delete this; }

 private:
  void Write() { StartWrite(&response_, batch_.Next(size_, false)); }

  const int size_;
  WriteBatch batch_;
  SimpleResponse response_;
};

// Sends a response per request.
class StreamingEcho final : public grpc::ServerBidiReactor<SimpleRequest, SimpleResponse> {
 public:
  StreamingEcho() {
    StartSendInitialMetadata();
    Proceed();
  }

  void OnSendInitialMetadataDone(bool ok) override { OnWriteDone(ok); }

  void OnReadDone(bool ok) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    echo_.Read(ok, request_);
    Proceed();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    echo_.Wrote(ok);
    Proceed();
  }

  void OnDone() override { delete this; }

 private:
  void Proceed() {
    if (echo_.BeginRead()) StartRead(&request_);
    if (echo_.BeginWrite()) StartWrite(&echo_.response(), echo_.options());
    if (echo_.BeginFinish()) Finish(echo_.status());
  }

  // Reactions to reads and writes may run concurrently.
  std::mutex mutex_;
  Echo echo_;
  SimpleRequest request_;
};

// Sends responses of the size that the first request asks for, until the requests end.
class BothWays final : public grpc::ServerBidiReactor<SimpleRequest, SimpleResponse> {
 public:
  BothWays() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ok && !has_started_) {
      size_ = request_.response_size();
      status_ = MakeResponse(size_, &response_);
    }
    if (!ok || !status_.ok()) {
      has_ended_ = true;
      if (!writing_) Finish(status_);
      return;
    }
    if (!std::exchange(has_started_, true)) {
      writing_ = true;
      StartSendInitialMetadata();
    }
    StartRead(&request_);
  }

  void OnSendInitialMetadataDone(bool ok) override { OnWriteDone(ok); }

  void OnWriteDone(bool ok) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    if (has_ended_) return Finish(status_);
    // A broken stream ends its reads too.
    if (ok) Write();
  }

  void OnDone() override { delete this; }

 private:
  void Write() {
    writing_ = true;
    StartWrite(&response_, batch_.Next(size_, false));
  }

  std::mutex mutex_;
  int size_ = 0;
  WriteBatch batch_;
  SimpleRequest request_;
  SimpleResponse response_;
  grpc::Status status_;
  bool has_started_ = false;
  bool has_ended_ = false;
  bool writing_ = false;
};

class CallbackService final : public Service, private BenchmarkService::CallbackService {
 public:
  void Register(grpc::ServerBuilder& builder) override {
    SetMessageAllocatorFor_UnaryCall(&reusing_);
    builder.RegisterService(this);
  }

  void Start() override {}

 private:
  grpc::ServerUnaryReactor* UnaryCall(grpc::CallbackServerContext* context, const SimpleRequest* request,
                                      SimpleResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(MakeResponse(request->response_size(), response));
    return reactor;
  }

  grpc::ServerReadReactor<SimpleRequest>* StreamingFromClient(grpc::CallbackServerContext* /*context*/,
                                                              SimpleResponse* response) override {
    return new FromClient(response);
  }

  grpc::ServerWriteReactor<SimpleResponse>* StreamingFromServer(grpc::CallbackServerContext* /*context*/,
                                                                const SimpleRequest* request) override {
    return new FromServer(request->response_size());
  }

  grpc::ServerBidiReactor<SimpleRequest, SimpleResponse>* StreamingCall(
      grpc::CallbackServerContext* /*context*/) override {
    return new StreamingEcho;
  }

  grpc::ServerBidiReactor<SimpleRequest, SimpleResponse>* StreamingBothWays(
      grpc::CallbackServerContext* /*context*/) override {
    return new BothWays;
  }

  Reusing reusing_;
};

}  // namespace

std::unique_ptr<Service> MakeCallbackService() { return std::make_unique<CallbackService>(); }
