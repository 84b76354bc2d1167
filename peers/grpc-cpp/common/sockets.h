#pragma once

#include <cstdint>
#include <optional>

// This process's established sockets, TCP and Unix stream, in the kernel's tables; none when /proc does not say.
std::optional<uint32_t> EstablishedSockets();
