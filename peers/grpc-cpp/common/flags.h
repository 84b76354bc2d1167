#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Goes over the words of a command line.
class Flags {
 public:
  explicit Flags(std::vector<std::string> words) : words_(std::move(words)) {}

  // The next word, if there is one.
  std::optional<std::string> Next();

  // The word behind `flag`; throws Misuse when there is none.
  std::string Value(const std::string& flag);

 private:
  std::vector<std::string> words_;
  size_t position_ = 0;
};

// These throw Misuse, naming `flag`, for anything else.

// A plain decimal number from `min` to `max`.
uint64_t ParseNumber(const std::string& flag, const std::string& text, uint64_t min, uint64_t max);

// What the file has, which is to be PEM.
std::string ReadFile(const std::string& flag, const std::string& path);

// `200ms`, `300us`, `1.5s`, up to a year; in ns.
uint64_t ParseDuration(const std::string& flag, const std::string& text);

// One of `choices`, as its index.
size_t ParseChoice(const std::string& flag, const std::string& text, const std::vector<std::string_view>& choices);
