#pragma once

#include "channels.h"
#include "common/result.h"

// Drives the server as the options say. The connections are not counted yet.
LoadResult Drive(const LoadOptions& options, const Clients& clients);
