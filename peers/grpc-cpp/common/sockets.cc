#include "sockets.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

// The relevant columns of a table in /proc/net, counted from 0.
struct Table {
  const char* path;
  size_t state;
  const char* established;
  size_t inode;
  // Another column that must have a certain value.
  size_t kind;
  const char* kind_wanted;
};

// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …`; TCP_ESTABLISHED is 01.
constexpr Table kTcp = {"/proc/self/net/tcp", 3, "01", 9, 3, "01"};
constexpr Table kTcp6 = {"/proc/self/net/tcp6", 3, "01", 9, 3, "01"};
// `Num RefCount Protocol Flags Type St Inode Path`; SS_CONNECTED is 03, SOCK_STREAM is 0001.
constexpr Table kUnix = {"/proc/self/net/unix", 5, "03", 6, 4, "0001"};

// Returns the inodes of this process's open sockets.
std::set<std::string> SocketInodes() {
  constexpr std::string_view kPrefix = "socket:[";
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    // A descriptor may be closed between listing and reading it.
    std::error_code error;
    const std::string name = std::filesystem::read_symlink(entry.path(), error).string();
    if (!error && name.rfind(kPrefix, 0) == 0) {
      inodes.insert(name.substr(kPrefix.size(), name.size() - kPrefix.size() - 1));
    }
  }
  return inodes;
}

std::optional<uint32_t> CountSockets(const Table& table, const std::set<std::string>& inodes) {
  std::ifstream file(table.path);
  if (!file) return std::nullopt;
  uint32_t count = 0;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::vector<std::string> columns;
    for (std::string field; fields >> field;) columns.push_back(field);
    columns.resize(std::max<size_t>(columns.size(), 10));
    const bool counts = columns[table.state] == table.established && columns[table.kind] == table.kind_wanted;
    if (counts && inodes.count(columns[table.inode]) > 0) ++count;
  }
  return count;
}

}  // namespace

std::optional<uint32_t> EstablishedSockets() {
  std::error_code error;
  if (!std::filesystem::exists("/proc/self/fd", error)) return std::nullopt;
  const std::set<std::string> inodes = SocketInodes();
  const auto tcp = CountSockets(kTcp, inodes);
  const auto unix_stream = CountSockets(kUnix, inodes);
  if (!tcp || !unix_stream) return std::nullopt;
  // A kernel without IPv6 has no such table.
  return *tcp + CountSockets(kTcp6, inodes).value_or(0) + *unix_stream;
}
