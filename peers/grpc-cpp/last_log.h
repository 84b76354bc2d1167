#pragma once

#include <string>

// Keeps gRPC's log off stderr and remembers what it said last: for why a port cannot be had, say, its interface has no
// other place.
class LastLog {
 public:
  LastLog();

  // The operating system's word for what the last line was about, if it holds one, else the line.
  std::string Reason() const;
};
