// A peer of the laboratory: gRPC's BenchmarkService and a load generator on gRPC C++, as peers/README.md says.

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>
#include <vector>

#include "load.h"
#include "misuse.h"
#include "serve.h"
#include "settings.h"

namespace {

void PrintVariants(const char* which, const std::vector<std::string_view>& variants) {
  std::printf("%s", which);
  for (const std::string_view variant : variants) std::printf(" %.*s", static_cast<int>(variant.size()), variant.data());
  std::printf("\n");
}

int Run(const std::string& command, Flags flags) {
  if (command == "serve") return Serve(ParseServe(std::move(flags)));
  if (command == "load") return RunLoad(ParseLoad(std::move(flags)));
  if (const auto word = flags.Next(); word && (command == "version" || command == "variants" || command == "settings")) {
    throw Misuse("`" + *word + "` is not understood: " + command + " takes no flags");
  }
  if (command == "version") {
    std::printf("gRPC C++ %s\n", grpc::Version().c_str());
  } else if (command == "variants") {
    PrintVariants("server", kServerVariants);
    PrintVariants("client", kClientVariants);
  } else if (command == "settings") {
    PrintSettings();
  } else {
    throw Misuse("`" + command + "` is not understood: the commands are version, variants, settings, serve and load");
  }
  return 0;
}

// Ends the process without running destructors: gRPC's shutdown waits for its threads, and there is nothing left that
// the kernel does not clean up.
[[noreturn]] void Exit(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.empty()) throw Misuse("a command is wanted: version, variants, settings, serve or load");
    const std::string command = words.front();
    words.erase(words.begin());
    Exit(Run(command, Flags(std::move(words))));
  } catch (const Misuse& misuse) {
    std::fprintf(stderr, "error: %s\n", misuse.what());
    Exit(2);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    Exit(1);
  }
}
