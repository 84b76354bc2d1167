// A peer of the laboratory: gRPC's BenchmarkService and a load generator on gRPC C++. Its command line and its JSON are
// those of `thalweg serve` and `thalweg load`, as far as it goes.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "load.h"
#include "serve.h"

namespace {

const char kUsage[] =
    "usage: peer-grpc-cpp serve [--listen ADDR]\n"
    "       peer-grpc-cpp load TARGET [--call unary] [--size BYTES] [-c IN_FLIGHT] [--connections N]\n"
    "                          [-z DURATION | -n TOTAL] [--warmup DURATION] [-O text|json]\n";

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const std::string command = words.front();
  words.erase(words.begin());
  try {
    if (command == "serve") return Serve(words);
    if (command == "load") return RunLoad(ParseLoad(words));
  } catch (const std::invalid_argument& misuse) {
    std::fprintf(stderr, "error: %s\n%s", misuse.what(), kUsage);
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  std::fputs(kUsage, stderr);
  return 2;
}
