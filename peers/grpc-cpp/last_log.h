#pragma once

#include <string>

// Keeps gRPC's log off stderr and remembers its last line. gRPC's interface reports some errors nowhere else, for
// example why a port is not available.
class LastLog {
 public:
  LastLog();

  // Returns the operating system's error in the last line, or the line itself.
  std::string Reason() const;
};
