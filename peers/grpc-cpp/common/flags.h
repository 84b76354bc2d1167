#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Iterates over the arguments of a command line.
class Flags {
 public:
  explicit Flags(std::vector<std::string> args) : args_(std::move(args)) {}

  // Returns the next argument, if any.
  std::optional<std::string> Next();

  // Returns the argument after `flag`; throws Misuse if there is none.
  std::string Value(const std::string& flag);

 private:
  std::vector<std::string> args_;
  size_t position_ = 0;
};

// The following functions throw Misuse for invalid input; the message names `flag`.

// Parses a plain decimal number from `min` to `max`.
uint64_t ParseNumber(const std::string& flag, const std::string& text, uint64_t min, uint64_t max);

// Reads a PEM file.
std::string ReadFile(const std::string& flag, const std::string& path);

// Parses a duration of up to a year (`200ms`, `300us`, `1.5s`) into ns.
uint64_t ParseDuration(const std::string& flag, const std::string& text);

// Parses one of `choices` into its index.
size_t ParseChoice(const std::string& flag, const std::string& text, const std::vector<std::string_view>& choices);
