#pragma once

#include <cstdint>
#include <optional>

// Returns the number of this process's established TCP and Unix stream sockets; none if /proc is not readable.
std::optional<uint32_t> EstablishedSockets();
