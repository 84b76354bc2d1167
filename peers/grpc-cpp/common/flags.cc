#include "flags.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "misuse.h"

namespace {

struct Unit {
  std::string_view name;
  double ns;
};

constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};

// Ensures that sums of times cannot overflow.
constexpr double kDurationNsMax = 366 * 24 * 3600e9;

}  // namespace

std::optional<std::string> Flags::Next() {
  if (position_ == args_.size()) return std::nullopt;
  return args_[position_++];
}

std::string Flags::Value(const std::string& flag) {
  std::optional<std::string> value = Next();
  if (!value) throw Misuse("`" + flag + "` wants a value");
  return *std::move(value);
}

uint64_t ParseNumber(const std::string& flag, const std::string& text, uint64_t min, uint64_t max) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end || number < min || number > max) {
    throw Misuse("`" + flag + " " + text + "`: a number from " + std::to_string(min) + " to " + std::to_string(max) +
                 " is wanted");
  }
  return number;
}

std::string ReadFile(const std::string& flag, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file || content.str().empty()) throw Misuse("`" + flag + " " + path + "`: there is nothing to read");
  return content.str();
}

uint64_t ParseDuration(const std::string& flag, const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view name(stopped, static_cast<size_t>(end - stopped));
  for (const Unit& unit : kUnits) {
    const double ns = number * unit.ns;
    if (error == std::errc() && name == unit.name && ns >= 0 && ns <= kDurationNsMax) {
      return static_cast<uint64_t>(std::llround(ns));
    }
  }
  throw Misuse("`" + flag + " " + text + "`: a duration such as 1.5s, 200ms or 300us is wanted");
}

size_t ParseChoice(const std::string& flag, const std::string& text, const std::vector<std::string_view>& choices) {
  std::string list;
  for (size_t index = 0; index < choices.size(); ++index) {
    if (text == choices[index]) return index;
    list.append(index == 0 ? "" : ", ").append(choices[index]);
  }
  throw Misuse("`" + flag + " " + text + "`: one of " + list + " is wanted");
}
