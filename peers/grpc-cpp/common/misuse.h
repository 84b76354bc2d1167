#pragma once

#include <stdexcept>

// An invalid command line: exit code 2; `what()` names the argument.
struct Misuse : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
