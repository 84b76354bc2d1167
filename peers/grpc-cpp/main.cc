// A peer of the lab: gRPC's BenchmarkService and a load generator on gRPC C++. Follows the contract of peers/README.md.

#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>

#include "common/misuse.h"
#include "common/program.h"
#include "load.h"
#include "serve.h"
#include "settings.h"

namespace {

int Run(const std::string& command, Flags flags) {
  if (command == "serve") return Serve(ParseServe(std::move(flags)));
  if (command == "load") return RunLoad(ParseLoad(std::move(flags), kLoadFlags));
  if (const auto arg = flags.Next(); arg && (command == "version" || command == "variants" || command == "settings")) {
    throw Misuse("unexpected argument `" + *arg + "`; " + command + " takes no flags");
  }
  if (command == "version") {
    std::printf("gRPC C++ %s\n", grpc::Version().c_str());
  } else if (command == "variants") {
    PrintVariants("server", kServerVariants);
    PrintVariants("client", kClientVariants);
  } else if (command == "settings") {
    PrintSettings();
  } else {
    throw Misuse("unknown command `" + command + "`; use version, variants, settings, serve or load");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { RunProgram(argc, argv, "version, variants, settings, serve or load", Run); }
