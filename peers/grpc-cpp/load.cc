#include "load.h"

#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>

#include "grpc/testing/benchmark_service.grpc.pb.h"
#include "histogram.h"

namespace {

using Clock = std::chrono::steady_clock;
using grpc::testing::BenchmarkService;
using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;

// When callers stop.
struct End {
  Clock::time_point time = Clock::time_point::max();
  uint64_t calls_left = UINT64_MAX;

  bool MayStart() {
    if (calls_left == 0 || Clock::now() >= time) return false;
    --calls_left;
    return true;
  }
};

struct Record {
  Histogram latencies;
  std::map<int, uint64_t> errors;
};

// One slot in flight: starts its next call when the last one ended.
struct Caller {
  BenchmarkService::Stub* stub;
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<SimpleResponse>> reader;
  SimpleResponse response;
  grpc::Status status;
  Clock::time_point start;

  void Start(const SimpleRequest& request, grpc::CompletionQueue* queue) {
    context = std::make_unique<grpc::ClientContext>();
    response.Clear();
    start = Clock::now();
    reader = stub->AsyncUnaryCall(context.get(), request, queue);
    reader->Finish(&response, &status, this);
  }
};

// Connections of their own: channels with equal arguments would share one.
std::vector<std::unique_ptr<BenchmarkService::Stub>> Connect(const Load& load) {
  std::vector<std::unique_ptr<BenchmarkService::Stub>> stubs;
  for (int i = 0; i < load.connections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    auto channel = grpc::CreateCustomChannel(load.target, grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
      throw std::runtime_error("no connection to " + load.target + " within 10 s");
    }
    stubs.push_back(BenchmarkService::NewStub(channel));
  }
  return stubs;
}

// Starts calls until `end` says that it is enough, and waits for those under way.
Record Drive(const Load& load, const std::vector<std::unique_ptr<BenchmarkService::Stub>>& stubs, End end) {
  SimpleRequest request;
  request.set_response_size(load.size_bytes);
  if (load.size_bytes > 0) request.mutable_payload()->mutable_body()->resize(load.size_bytes);

  grpc::CompletionQueue queue;
  std::vector<Caller> callers(load.in_flight);
  int active = 0;
  for (int i = 0; i < load.in_flight; ++i) {
    callers[i].stub = stubs[i % stubs.size()].get();
    if (!end.MayStart()) break;
    callers[i].Start(request, &queue);
    ++active;
  }
  Record record;
  void* tag = nullptr;
  bool ok = false;
  while (active > 0 && queue.Next(&tag, &ok)) {
    auto* caller = static_cast<Caller*>(tag);
    if (caller->status.ok()) {
      record.latencies.Record(std::chrono::nanoseconds(Clock::now() - caller->start).count());
    } else {
      ++record.errors[caller->status.error_code()];
    }
    if (end.MayStart()) {
      caller->Start(request, &queue);
    } else {
      --active;
    }
  }
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return record;
}

struct CpuTime {
  double user_ns;
  double system_ns;
};

CpuTime CpuOfThisProcess() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto ns = [](const timeval& time) { return time.tv_sec * 1e9 + time.tv_usec * 1e3; };
  return {ns(usage.ru_utime), ns(usage.ru_stime)};
}

// The keys that measurements compare, as in the schema `thalweg.load/1`.
void Print(const Load& load, const Record& record, double seconds, CpuTime cpu) {
  const Histogram& latencies = record.latencies;
  const uint64_t calls = latencies.count();
  auto percentile = [&](double p) { return static_cast<unsigned long long>(latencies.Percentile(p)); };
  if (!load.json) {
    std::printf("%.0f calls/s, p50 %llu ns, p99 %llu ns\n", calls / seconds, percentile(50), percentile(99));
    for (const auto& [code, count] : record.errors) std::printf("status %d: %lu\n", code, count);
    return;
  }
  std::printf("{\n  \"schema\": \"thalweg.load/1\",\n");
  std::printf(
      "  \"settings\": {\"target\": \"%s\", \"call\": \"%s\", \"size_bytes\": %d, \"in_flight\": %d, "
      "\"connections\": %d, \"warmup_ns\": %lld},\n",
      load.target.c_str(), load.call.c_str(), load.size_bytes, load.in_flight, load.connections,
      static_cast<long long>(load.warmup.count()));
  std::printf("  \"duration_ns\": %.0f,\n  \"closed_loop\": true,\n", seconds * 1e9);
  std::printf("  \"rate_per_s\": %.3f,\n  \"calls\": %lu,\n  \"messages\": %lu,\n", calls / seconds, calls, calls);
  std::printf("  \"errors\": {");
  const char* comma = "";
  for (const auto& [code, count] : record.errors) {
    std::printf("%s\"%d\": %lu", comma, code, count);
    comma = ", ";
  }
  std::printf("},\n");
  if (calls > 0) {
    std::printf(
        "  \"latency_ns\": {\"min\": %lu, \"mean\": %.1f, \"p50\": %llu, \"p90\": %llu, \"p99\": %llu, "
        "\"p99_9\": %llu, \"p99_99\": %llu, \"max\": %lu},\n",
        latencies.min(), latencies.mean(), percentile(50), percentile(90), percentile(99), percentile(99.9),
        percentile(99.99), latencies.max());
    std::printf("  \"client_cpu_per_call\": {\"user_ns\": %.1f, \"system_ns\": %.1f},\n", cpu.user_ns / calls,
                cpu.system_ns / calls);
  } else {
    std::printf("  \"latency_ns\": null,\n  \"client_cpu_per_call\": null,\n");
  }
  std::printf("  \"client_cpu\": {\"user_ns\": %.0f, \"system_ns\": %.0f},\n", cpu.user_ns, cpu.system_ns);
  std::printf("  \"connections\": {\"asked\": %d, \"established\": null}\n}\n", load.connections);
}

// `2`, `2s`, `1.5s`, `200ms`.
std::chrono::nanoseconds ParseDuration(const std::string& text) {
  size_t end = 0;
  const double number = std::stod(text, &end);
  const std::string unit = text.substr(end);
  if (unit == "ms") return std::chrono::nanoseconds(static_cast<int64_t>(number * 1e6));
  if (unit == "s" || unit.empty()) return std::chrono::nanoseconds(static_cast<int64_t>(number * 1e9));
  throw std::invalid_argument("`" + text + "` is not a duration such as 5s or 200ms");
}

}  // namespace

Load ParseLoad(const std::vector<std::string>& words) {
  Load load;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word[0] != '-') {
      load.target = word;
      continue;
    }
    if (i + 1 == words.size()) throw std::invalid_argument(word + " wants a value");
    const std::string& value = words[++i];
    if (word == "--call") {
      load.call = value;
    } else if (word == "--size") {
      load.size_bytes = std::stoi(value);
    } else if (word == "-c") {
      load.in_flight = std::stoi(value);
    } else if (word == "--connections") {
      load.connections = std::stoi(value);
    } else if (word == "-z") {
      load.duration = ParseDuration(value);
    } else if (word == "-n") {
      load.total = std::stoull(value);
    } else if (word == "--warmup") {
      load.warmup = ParseDuration(value);
    } else if (word == "-O") {
      load.json = value == "json";
    } else {
      throw std::invalid_argument("`" + word + "` is not understood");
    }
  }
  if (load.target.empty()) throw std::invalid_argument("load wants a target");
  if (load.call != "unary") throw std::invalid_argument("this peer makes unary calls only");
  if (load.in_flight < 1 || load.connections < 1) throw std::invalid_argument("-c and --connections start at 1");
  return load;
}

int RunLoad(const Load& load) {
  const auto stubs = Connect(load);
  if (load.warmup.count() > 0) Drive(load, stubs, End{Clock::now() + load.warmup});

  End end;
  if (load.total) {
    end.calls_left = *load.total;
  } else {
    end.time = Clock::now() + load.duration.value_or(std::chrono::seconds(5));
  }
  const CpuTime before = CpuOfThisProcess();
  const Clock::time_point start = Clock::now();
  const Record record = Drive(load, stubs, end);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const CpuTime after = CpuOfThisProcess();
  Print(load, record, seconds, {after.user_ns - before.user_ns, after.system_ns - before.system_ns});
  return record.latencies.count() > 0 ? 0 : 1;
}
