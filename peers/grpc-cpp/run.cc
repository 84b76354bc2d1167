#include "run.h"

#include <grpcpp/support/status_code_enum.h>

void Run::Fail(int code, const std::string& message, bool was_given_up) {
  const uint64_t now_ns = NowNs();
  if (!IsMeasured(now_ns) && !(was_given_up && now_ns >= from_ns_)) return;
  const int counted = code == grpc::StatusCode::OK ? int{grpc::StatusCode::DATA_LOSS} : code;
  recorder.Error(counted);
  if (!first_failure_.empty()) return;
  first_failure_ = CodeName(counted);
  if (!message.empty()) first_failure_ += ": " + message;
}
