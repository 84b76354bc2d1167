// The completion queue interface: one thread per queue, as gRPC's performance notes advise.

#include <sched.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "continuation.h"
#include "echo.h"
#include "grpc/testing/benchmark_service.grpc.pb.h"
#include "messages.h"
#include "serve.h"
#include "service.h"
#include "write_batch.h"

namespace {

using grpc::testing::BenchmarkService;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;
using AsyncService = BenchmarkService::AsyncService;

// Number of calls of a method that a queue can accept at once; further calls wait in a slower place.
constexpr int kUnaryCallsAwaited = 256;
constexpr int kStreamsAwaited = 16;

// Number of completions that a thread handles between polls of the connections, see Lane::PollConnections.
constexpr int kCompletionsPerPoll = 64;

class EchoCall;

// A queue and the work of its thread.
struct Lane {
  AsyncService* service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  // Streams with a response that waits for more.
  std::vector<EchoCall*> waiting;
  // Completions before the last poll of the connections.
  std::vector<std::pair<Continuation*, bool>> completed;

  void Run();
  void PollConnections();
};

// Calls of one method: awaited, in flight, or finished and reusable.
template <class Call>
class Calls {
 public:
  explicit Calls(Lane* lane) : lane_(lane) {}

  void Await() {
    if (free_.empty()) free_.push_back(new Call(lane_, this));
    Call* call = free_.back();
    free_.pop_back();
    call->Await();
  }

  void Release(Call* call) { free_.push_back(call); }

 private:
  Lane* lane_;
  std::vector<Call*> free_;
};

class UnaryCall {
 public:
  UnaryCall(Lane* lane, Calls<UnaryCall>* calls) : lane_(lane), calls_(calls) {}

  void Await() {
    writer_.reset();
    context_.emplace();
    writer_.emplace(&*context_);
    lane_->service->RequestUnaryCall(&*context_, &request_, &*writer_, lane_->queue.get(), lane_->queue.get(), started_.tag());
  }

 private:
  void Started(bool ok) {
    if (!ok) return;
    calls_->Await();
    const grpc::Status status = MakeResponse(request_.response_size(), &response_);
    writer_->Finish(response_, status, finished_.tag());
  }

  void Finished(bool /*ok*/) { calls_->Release(this); }

  Lane* lane_;
  Calls<UnaryCall>* calls_;
  SimpleRequest request_;
  SimpleResponse response_;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncResponseWriter<SimpleResponse>> writer_;
  Then<UnaryCall, &UnaryCall::Started> started_{this};
  Then<UnaryCall, &UnaryCall::Finished> finished_{this};
};

// Sends one response after the requests, of the size that the last one asks for.
class FromClientCall {
 public:
  FromClientCall(Lane* lane, Calls<FromClientCall>* calls) : lane_(lane), calls_(calls) {}

  void Await() {
    reader_.reset();
    context_.emplace();
    reader_.emplace(&*context_);
    response_size_ = 0;
    lane_->service->RequestStreamingFromClient(&*context_, &*reader_, lane_->queue.get(), lane_->queue.get(), started_.tag());
  }

 private:
  void Started(bool ok) {
    if (!ok) return;
    calls_->Await();
    reader_->Read(&request_, read_.tag());
  }

  void Read(bool ok) {
    if (ok) {
      response_size_ = request_.response_size();
      return reader_->Read(&request_, read_.tag());
    }
    const grpc::Status status = MakeResponse(response_size_, &response_);
    if (status.ok()) return reader_->Finish(response_, status, finished_.tag());
    reader_->FinishWithError(status, finished_.tag());
  }

  void Finished(bool /*ok*/) { calls_->Release(this); }

  Lane* lane_;
  Calls<FromClientCall>* calls_;
  SimpleRequest request_;
  SimpleResponse response_;
  int response_size_ = 0;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncReader<SimpleResponse, SimpleRequest>> reader_;
  Then<FromClientCall, &FromClientCall::Started> started_{this};
  Then<FromClientCall, &FromClientCall::Read> read_{this};
  Then<FromClientCall, &FromClientCall::Finished> finished_{this};
};

// Repeats the same response until the call is cancelled.
class FromServerCall {
 public:
  FromServerCall(Lane* lane, Calls<FromServerCall>* calls) : lane_(lane), calls_(calls) {}

  void Await() {
    writer_.reset();
    context_.emplace();
    writer_.emplace(&*context_);
    lane_->service->RequestStreamingFromServer(&*context_, &request_, &*writer_, lane_->queue.get(),
                                               lane_->queue.get(), started_.tag());
  }

 private:
  void Started(bool ok) {
    if (!ok) return;
    calls_->Await();
    const grpc::Status status = MakeResponse(request_.response_size(), &response_);
    if (!status.ok()) return writer_->Finish(status, finished_.tag());
    // Sent separately: see WriteBatch.
    writer_->SendInitialMetadata(wrote_.tag());
  }

  void Wrote(bool ok) {
    if (!ok) return writer_->Finish(grpc::Status::CANCELLED, finished_.tag());
    writer_->Write(response_, batch_.Next(request_.response_size(), false), wrote_.tag());
  }

  void Finished(bool /*ok*/) { calls_->Release(this); }

  Lane* lane_;
  Calls<FromServerCall>* calls_;
  SimpleRequest request_;
  SimpleResponse response_;
  WriteBatch batch_;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncWriter<SimpleResponse>> writer_;
  Then<FromServerCall, &FromServerCall::Started> started_{this};
  Then<FromServerCall, &FromServerCall::Wrote> wrote_{this};
  Then<FromServerCall, &FromServerCall::Finished> finished_{this};
};

// Sends a response per request.
class EchoCall {
 public:
  EchoCall(Lane* lane, Calls<EchoCall>* calls) : lane_(lane), calls_(calls) {}

  void Await() {
    stream_.reset();
    context_.emplace();
    stream_.emplace(&*context_);
    echo_.emplace();
    lane_->service->RequestStreamingCall(&*context_, &*stream_, lane_->queue.get(), lane_->queue.get(), started_.tag());
  }

  // The queue has no other completions ready.
  void Flush() {
    waits_ = false;
    if (echo_->BeginWrite()) stream_->Write(echo_->response(), echo_->options(), wrote_.tag());
    Proceed();
  }

 private:
  void Started(bool ok) {
    if (!ok) return;
    calls_->Await();
    stream_->SendInitialMetadata(wrote_.tag());
    Proceed();
  }

  void Read(bool ok) {
    echo_->Read(ok, request_);
    Proceed();
  }

  void Wrote(bool ok) {
    echo_->Wrote(ok);
    Proceed();
  }

  void Proceed() {
    if (echo_->BeginRead()) stream_->Read(&request_, read_.tag());
    if (echo_->MayWait()) {
      if (!std::exchange(waits_, true)) lane_->waiting.push_back(this);
      return;
    }
    if (echo_->BeginWrite()) stream_->Write(echo_->response(), echo_->options(), wrote_.tag());
    if (!waits_ && echo_->BeginFinish()) stream_->Finish(echo_->status(), finished_.tag());
  }

  void Finished(bool /*ok*/) { calls_->Release(this); }

  Lane* lane_;
  Calls<EchoCall>* calls_;
  SimpleRequest request_;
  std::optional<Echo> echo_;
  // Whether this is in the lane's list.
  bool waits_ = false;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncReaderWriter<SimpleResponse, SimpleRequest>> stream_;
  Then<EchoCall, &EchoCall::Started> started_{this};
  Then<EchoCall, &EchoCall::Read> read_{this};
  Then<EchoCall, &EchoCall::Wrote> wrote_{this};
  Then<EchoCall, &EchoCall::Finished> finished_{this};
};

// Sends responses of the size that the first request asks for, until the requests end.
class BothWaysCall {
 public:
  BothWaysCall(Lane* lane, Calls<BothWaysCall>* calls) : lane_(lane), calls_(calls) {}

  void Await() {
    stream_.reset();
    context_.emplace();
    stream_.emplace(&*context_);
    status_ = grpc::Status::OK;
    has_started_ = has_ended_ = writing_ = false;
    lane_->service->RequestStreamingBothWays(&*context_, &*stream_, lane_->queue.get(), lane_->queue.get(), started_.tag());
  }

 private:
  void Started(bool ok) {
    if (!ok) return;
    calls_->Await();
    stream_->Read(&request_, read_.tag());
  }

  void Read(bool ok) {
    if (ok && !has_started_) {
      size_ = request_.response_size();
      status_ = MakeResponse(size_, &response_);
    }
    if (!ok || !status_.ok()) {
      has_ended_ = true;
      if (!writing_) stream_->Finish(status_, finished_.tag());
      return;
    }
    if (!std::exchange(has_started_, true)) {
      writing_ = true;
      stream_->SendInitialMetadata(wrote_.tag());
    }
    stream_->Read(&request_, read_.tag());
  }

  void Wrote(bool ok) {
    writing_ = false;
    if (has_ended_) return stream_->Finish(status_, finished_.tag());
    // A broken stream ends its reads too.
    if (ok) Write();
  }

  void Write() {
    writing_ = true;
    stream_->Write(response_, batch_.Next(size_, false), wrote_.tag());
  }

  void Finished(bool /*ok*/) { calls_->Release(this); }

  Lane* lane_;
  Calls<BothWaysCall>* calls_;
  SimpleRequest request_;
  SimpleResponse response_;
  int size_ = 0;
  WriteBatch batch_;
  grpc::Status status_;
  bool has_started_ = false;
  bool has_ended_ = false;
  bool writing_ = false;
  std::optional<grpc::ServerContext> context_;
  std::optional<grpc::ServerAsyncReaderWriter<SimpleResponse, SimpleRequest>> stream_;
  Then<BothWaysCall, &BothWaysCall::Started> started_{this};
  Then<BothWaysCall, &BothWaysCall::Read> read_{this};
  Then<BothWaysCall, &BothWaysCall::Wrote> wrote_{this};
  Then<BothWaysCall, &BothWaysCall::Finished> finished_{this};
};

void Lane::Run() {
  Calls<UnaryCall> unary(this);
  Calls<FromClientCall> from_client(this);
  Calls<FromServerCall> from_server(this);
  Calls<EchoCall> echo(this);
  Calls<BothWaysCall> both_ways(this);
  for (int i = 0; i < kUnaryCallsAwaited; ++i) unary.Await();
  for (int i = 0; i < kStreamsAwaited; ++i) {
    from_client.Await();
    from_server.Await();
    echo.Await();
    both_ways.Await();
  }
  void* tag = nullptr;
  bool ok = false;
  int handled = 0;
  while (true) {
    const gpr_timespec until = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    const gpr_timespec now = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    switch (queue->AsyncNext(&tag, &ok, waiting.empty() ? until : now)) {
      case grpc::CompletionQueue::GOT_EVENT:
        static_cast<Continuation*>(tag)->Resume(ok);
        if (++handled < kCompletionsPerPoll) break;
        handled = 0;
        PollConnections();
        break;
      case grpc::CompletionQueue::TIMEOUT:
        for (EchoCall* call : std::exchange(waiting, {})) call->Flush();
        break;
      case grpc::CompletionQueue::SHUTDOWN:
        return;
    }
  }
}

// Polls the connections, then handles what has completed. A queue polls them only when it has nothing to return, and
// writes of an endless stream whose client keeps up complete at once. Without this, three or four of 16 such streams
// monopolize the thread, and the requests of the others are not read.
//
// The first of two timeouts may come without a poll: a completion while nobody polls makes gRPC skip the next poll
// (`kicked_without_poller`, src/core/lib/iomgr/ev_epoll1_linux.cc).
void Lane::PollConnections() {
  void* tag = nullptr;
  bool ok = false;
  for (int timeouts = 0; timeouts < 2;) {
    const auto status = queue->AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
    if (status == grpc::CompletionQueue::GOT_EVENT) {
      completed.emplace_back(static_cast<Continuation*>(tag), ok);
    } else {
      ++timeouts;
    }
  }
  for (const auto& [continuation, succeeded] : completed) continuation->Resume(succeeded);
  completed.clear();
}

class CompletionQueueService final : public Service {
 public:
  explicit CompletionQueueService(size_t threads) : threads_(threads) {}

  void Register(grpc::ServerBuilder& builder) override {
    builder.RegisterService(&service_);
    for (size_t i = 0; i < threads_; ++i) {
      lanes_.push_back(std::make_unique<Lane>(Lane{&service_, builder.AddCompletionQueue(), {}, {}}));
    }
  }

  void Start() override {
    // They run until the process ends.
    for (const auto& lane : lanes_) std::thread(&Lane::Run, lane.get()).detach();
  }

 private:
  const size_t threads_;
  AsyncService service_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

size_t ProcessorsAllowed() {
  cpu_set_t set;
  const bool is_known = sched_getaffinity(0, sizeof(set), &set) == 0;
  return is_known ? static_cast<size_t>(CPU_COUNT(&set)) : 1;
}

std::unique_ptr<Service> MakeCompletionQueueService(size_t threads) {
  return std::make_unique<CompletionQueueService>(threads);
}
