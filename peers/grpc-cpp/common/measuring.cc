#include "measuring.h"

#include <sys/resource.h>

#include <cstdio>

namespace {

CpuTime CpuOfThisProcess() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_usec) * 1e3;
  };
  return {ns(usage.ru_utime), ns(usage.ru_stime)};
}

}  // namespace

void Measuring::Begin() {
  has_started_ = true;
  Announce("measuring");
  before_ = CpuOfThisProcess();
}

void Measuring::End() {
  if (has_ended_) return;
  if (!has_started_) Begin();
  const CpuTime after = CpuOfThisProcess();
  cpu_ = {after.user_ns - before_.user_ns, after.system_ns - before_.system_ns};
  has_ended_ = true;
  Announce("measured");
}

void Measuring::Announce(const char* line) const {
  if (!announces_) return;
  std::puts(line);
  std::fflush(stdout);
}
