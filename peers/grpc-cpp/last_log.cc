#include "last_log.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <mutex>

namespace {

std::mutex mutex;
std::string last_line;

void Remember(gpr_log_func_args* args) {
  const std::lock_guard<std::mutex> lock(mutex);
  last_line = args->message;
}

}  // namespace

LastLog::LastLog() {
  gpr_set_log_function(Remember);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

std::string LastLog::Reason() const {
  const std::lock_guard<std::mutex> lock(mutex);
  constexpr std::string_view kKey = "os_error:\"";
  if (const size_t key = last_line.find(kKey); key != std::string::npos) {
    const size_t from = key + kKey.size();
    return last_line.substr(from, last_line.find('"', from) - from);
  }
  std::string line = last_line.empty() ? "gRPC does not say why" : last_line;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}
