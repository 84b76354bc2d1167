#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flags.h"

// Answers a command; the exit code. Throws Misuse for what it does not understand.
using Command = int (*)(const std::string& command, Flags flags);

// Has `run` answer the command line, whose first word is one of `commands`, and ends the process: with 2 and a line on
// stderr for what is not understood, with 1 and a line for what failed. Runs no destructors: stacks wait in theirs for
// threads, and there is nothing left that the kernel does not clean up.
[[noreturn]] void RunProgram(int argc, char** argv, std::string_view commands, Command run);

// A line of `variants`: the default first.
void PrintVariants(const char* side, const std::vector<std::string_view>& variants);

// A line of `settings`.
void PrintSetting(const char* side, const std::string& name, const std::string& value, const std::string& why);
