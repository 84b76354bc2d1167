#pragma once

#include <stdexcept>

// The command line makes no sense: exit code 2, and `what()` names the word.
struct Misuse : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
