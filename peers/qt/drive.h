#pragma once

#include "channels.h"
#include "common/result.h"

// Drives the server as the options say. Does not count the connections.
LoadResult Drive(const LoadOptions& options, const Clients& clients);
