// A peer of the lab: a load generator on Qt GRPC, which has no server. Follows the contract of peers/README.md.

#include <QtGrpc/qtgrpcversion.h>

#include <cstdio>
#include <string>

#include "common/misuse.h"
#include "common/program.h"
#include "load.h"
#include "settings.h"

namespace {

int Run(const std::string& command, Flags flags) {
  if (command == "load") return RunLoad(ParseQtLoad(std::move(flags)));
  if (command == "serve") throw Misuse("`serve` is not supported: Qt GRPC has no server");
  const bool takes_none = command == "version" || command == "variants" || command == "settings";
  if (const auto arg = flags.Next(); arg && takes_none) {
    throw Misuse("unexpected argument `" + *arg + "`; " + command + " takes no flags");
  }
  if (command == "version") {
    std::printf("Qt GRPC %s\n", QTGRPC_VERSION_STR);
  } else if (command == "variants") {
    PrintVariants("client", {});
  } else if (command == "settings") {
    PrintSettings();
  } else {
    throw Misuse("unknown command `" + command + "`; use version, variants, settings or load");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { RunProgram(argc, argv, "version, variants, settings or load", Run); }
