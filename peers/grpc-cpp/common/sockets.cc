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
std::set<std::string> OwnSockets() {
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

std::optional<uint32_t> CountRows(const Table& table, const std::set<std::string>& own) {
  std::ifstream file(table.path);
  if (!file) return std::nullopt;
  uint32_t count = 0;
  std::string row;
  std::getline(file, row);
  while (std::getline(file, row)) {
    std::istringstream words(row);
    std::vector<std::string> columns;
    for (std::string word; words >> word;) columns.push_back(word);
    columns.resize(std::max<size_t>(columns.size(), 10));
    const bool counts = columns[table.state] == table.established && columns[table.kind] == table.kind_wanted;
    if (counts && own.count(columns[table.inode]) > 0) ++count;
  }
  return count;
}

}  // namespace

std::optional<uint32_t> EstablishedSockets() {
  std::error_code error;
  if (!std::filesystem::exists("/proc/self/fd", error)) return std::nullopt;
  const std::set<std::string> own = OwnSockets();
  const auto tcp = CountRows(kTcp, own);
  const auto unix_stream = CountRows(kUnix, own);
  if (!tcp || !unix_stream) return std::nullopt;
  // A kernel without IPv6 has no such table.
  return *tcp + CountRows(kTcp6, own).value_or(0) + *unix_stream;
}
