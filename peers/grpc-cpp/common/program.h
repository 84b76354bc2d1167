#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// Runs a command and returns the exit code. Throws Misuse for an invalid command line.
using Command = int (*)(const std::string& command, Flags flags);

// Runs the command line, whose first argument is one of `commands`, and ends the process. Misuse exits with 2 and other
// failures with 1, each with a line on stderr. Runs no destructors: they would wait for threads, and the kernel cleans
// up.
[[noreturn]] void RunProgram(int argc, char** argv, std::string_view commands, Command run);

// Prints a line of `variants`: the default first.
void PrintVariants(const char* side, const std::vector<std::string_view>& variants);

// Prints a line of `settings`.
void PrintSetting(const char* side, const std::string& name, const std::string& value, const std::string& why);
