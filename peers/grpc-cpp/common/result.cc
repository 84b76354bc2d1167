#include "result.h"

#include <ctime>
#include <iomanip>
#include <sstream>

namespace {

// A client whose threads were busy for a larger share was itself the bottleneck.
constexpr double kBusyShareMax = 0.95;

std::string Quoted(const std::string& text) {
  std::ostringstream out;
  out << '"' << std::hex << std::setfill('0');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out << "\\u" << std::setw(4) << static_cast<int>(c);
    } else {
      out << c;
    }
  }
  out << '"';
  return out.str();
}

template <class Number>
std::string OrNull(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "null";
}

// Formats like `2026-01-31T12:00:00.000000001Z`.
std::string Rfc3339(std::chrono::nanoseconds since_1970) {
  const std::time_t seconds = since_1970.count() / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::ostringstream out;
  out << std::put_time(&utc, "\"%Y-%m-%dT%H:%M:%S.") << std::setfill('0') << std::setw(9)
      << since_1970.count() % 1'000'000'000 << "Z\"";
  return out.str();
}

std::string Cpu(CpuTime cpu, double divisor) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(3) << "{\"user_ns\": " << cpu.user_ns / divisor
      << ", \"system_ns\": " << cpu.system_ns / divisor << "}";
  return out.str();
}

std::string Latency(const Recorder& recorder) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(3) << "{\"min\": " << recorder.min_ns() << ", \"mean\": " << recorder.mean_ns()
      << ", \"p50\": " << recorder.PercentileNs(50) << ", \"p90\": " << recorder.PercentileNs(90)
      << ", \"p99\": " << recorder.PercentileNs(99) << ", \"p99_9\": " << recorder.PercentileNs(99.9)
      << ", \"p99_99\": " << recorder.PercentileNs(99.99) << ", \"max\": " << recorder.max_ns() << "}";
  return out.str();
}

std::string PaceOf(const Recorder& recorder) {
  const Pace& pace = recorder.pace();
  if (pace.messages == 0) return "null";
  std::ostringstream out;
  out << std::fixed << std::setprecision(3)
      << "{\"mean\": " << static_cast<double>(pace.sum_ns) / static_cast<double>(pace.messages)
      << ", \"gap_max\": " << pace.gap_max_ns << ", \"messages_per_reading\": " << pace.messages_per_reading << "}";
  return out.str();
}

std::string Settings(const LoadOptions& options) {
  std::ostringstream out;
  out << "{\"target\": " << Quoted(options.target) << ", \"call\": \"" << kCallTypes[static_cast<size_t>(options.call)]
      << "\", \"size_bytes\": " << options.size << ", \"in_flight\": " << options.in_flight
      << ", \"connections\": " << options.connections << ", \"warmup_ns\": " << options.warmup_ns
      << ", \"duration_ns\": " << OrNull(options.duration_ns) << ", \"total\": " << OrNull(options.total)
      << ", \"cpus\": null}";
  return out.str();
}

std::string Errors(const Recorder& recorder) {
  std::string list;
  for (size_t code = 0; code < Recorder::kCodes; ++code) {
    const uint64_t count = recorder.errors()[code];
    if (count == 0) continue;
    list += (list.empty() ? "\"" : ", \"") + std::string(CodeName(static_cast<int>(code))) + "\": " + std::to_string(count);
  }
  return "{" + list + "}";
}

std::string Spikes(const Recorder& recorder) {
  std::string list;
  for (const Spike& spike : recorder.spikes()) {
    list += (list.empty() ? "{\"took_ns\": " : ", {\"took_ns\": ") + std::to_string(spike.took_ns) +
            ", \"at_ns\": " + std::to_string(spike.at_ns) + "}";
  }
  return "[" + list + "]";
}

std::string Notes(const LoadOptions& options, const LoadResult& result) {
  std::string list;
  const auto note = [&](const std::string& text, bool invalidates) {
    list += (list.empty() ? "{\"text\": " : ", {\"text\": ") + Quoted(text) +
            ", \"invalidates\": " + (invalidates ? "true}" : "false}");
  };
  if (!result.first_failure.empty()) note("the first failed call ended with " + result.first_failure, false);
  const double busy = (result.cpu.user_ns + result.cpu.system_ns) / static_cast<double>(result.duration_ns) / options.threads;
  if (busy > kBusyShareMax) {
    const int percent = static_cast<int>(std::min(busy, 1.0) * 100 + 0.5);
    note("the client's processors were busy for " + std::to_string(percent) +
             " % of the time: the client was the limit, not the server",
         true);
  }
  if (!result.established) {
    note("the kernel could not be asked for the number of connections", false);
  } else if (*result.established != options.connections) {
    note("connections: " + std::to_string(options.connections) + " requested, " + std::to_string(*result.established) +
             " in the kernel's tables",
         false);
  }
  return "[" + list + "]";
}

double RatePerS(const LoadResult& result) {
  return result.duration_ns == 0
             ? 0
             : static_cast<double>(result.recorder.operations()) * 1e9 / static_cast<double>(result.duration_ns);
}

}  // namespace

std::string Json(const LoadOptions& options, const LoadResult& result) {
  const Recorder& recorder = result.recorder;
  const uint64_t messages = recorder.operations();
  const uint64_t payload = messages * static_cast<uint64_t>(options.size);
  const bool sends = options.call != CallType::kServerStream;
  const bool receives = options.call != CallType::kClientStream;
  std::ostringstream out;
  out << std::fixed << std::setprecision(3);
  out << "{\n  \"schema\": \"thalweg.load/3\",\n";
  out << "  \"settings\": " << Settings(options) << ",\n";
  out << "  \"started\": " << Rfc3339(result.started) << ",\n";
  out << "  \"ended\": " << Rfc3339(result.started + std::chrono::nanoseconds(result.duration_ns)) << ",\n";
  out << "  \"duration_ns\": " << result.duration_ns << ",\n";
  out << "  \"drain_ns\": " << result.drain_ns << ",\n";
  out << "  \"closed_loop\": true,\n";
  out << "  \"rate_per_s\": " << RatePerS(result) << ",\n";
  out << "  \"calls\": " << recorder.calls() << ",\n";
  out << "  \"messages\": " << messages << ",\n";
  out << "  \"errors\": " << Errors(recorder) << ",\n";
  out << "  \"bytes_sent\": " << (sends ? payload : 0) << ",\n";
  out << "  \"bytes_received\": " << (receives ? payload : 0) << ",\n";
  out << "  \"latency_ns\": " << (recorder.has_latencies() ? Latency(recorder) : "null") << ",\n";
  out << "  \"pace_ns\": " << PaceOf(recorder) << ",\n";
  out << "  \"spikes\": " << Spikes(recorder) << ",\n";
  out << "  \"histogram\": \"" << recorder.latencies().Encoded() << "\",\n";
  out << "  \"client_cpu\": " << Cpu(result.cpu, 1) << ",\n";
  out << "  \"client_cpu_per_call\": " << (messages > 0 ? Cpu(result.cpu, static_cast<double>(messages)) : "null") << ",\n";
  out << "  \"connections\": {\"asked\": " << options.connections << ", \"established\": " << OrNull(result.established)
      << "},\n";
  out << "  \"notes\": " << Notes(options, result) << "\n}\n";
  return out.str();
}

std::string Text(const LoadOptions& options, const LoadResult& result) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(0) << kCallTypes[static_cast<size_t>(options.call)] << ": " << RatePerS(result)
      << " /s";
  if (result.recorder.has_latencies()) out << ", latency in ns " << Latency(result.recorder);
  if (result.recorder.pace().messages > 0) out << ", pace in ns " << PaceOf(result.recorder);
  out << ", errors " << Errors(result.recorder) << ", connections " << OrNull(result.established) << "\n";
  return out.str();
}
