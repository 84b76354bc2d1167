#include "run.h"

namespace {

// gRPC status codes.
constexpr int kOk = 0;
constexpr int kDataLoss = 15;

}  // namespace

void Run::Fail(int code, const std::string& message, bool timed_out) {
  const uint64_t now_ns = NowNs();
  if (!IsMeasured(now_ns) && !(timed_out && now_ns >= from_ns_)) return;
  const int counted = code == kOk ? kDataLoss : code;
  recorder.Error(counted);
  if (!first_failure_.empty()) return;
  first_failure_ = CodeName(counted);
  if (!message.empty()) first_failure_ += ": " + message;
}
