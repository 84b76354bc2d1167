#include "program.h"

#include <cstdio>
#include <cstdlib>

#include "misuse.h"

namespace {

[[noreturn]] void Exit(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

void RunProgram(int argc, char** argv, std::string_view commands, Command run) {
  std::vector<std::string> args(argv + 1, argv + argc);
  try {
    if (args.empty()) throw Misuse("a command is wanted: " + std::string(commands));
    const std::string command = args.front();
    args.erase(args.begin());
    Exit(run(command, Flags(std::move(args))));
  } catch (const Misuse& misuse) {
    std::fprintf(stderr, "error: %s\n", misuse.what());
    Exit(2);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    Exit(1);
  }
}

void PrintVariants(const char* side, const std::vector<std::string_view>& variants) {
  std::printf("%s", side);
  for (const std::string_view variant : variants) std::printf(" %.*s", static_cast<int>(variant.size()), variant.data());
  std::printf("\n");
}

void PrintSetting(const char* side, const std::string& name, const std::string& value, const std::string& why) {
  std::printf("%s\t%s\t%s\t%s\n", side, name.c_str(), value.c_str(), why.c_str());
}
