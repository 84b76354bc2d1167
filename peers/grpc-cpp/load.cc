#include "load.h"

#include <cstdio>

#include "channels.h"
#include "common/result.h"
#include "common/sockets.h"
#include "drive.h"
#include "last_log.h"

int RunLoad(const LoadOptions& options) {
  const LastLog log;
  const std::optional<uint32_t> before = EstablishedSockets();
  const Stubs stubs = Connect(options);
  FirstCall(options, *stubs.front());

  LoadResult result = Drive(options, stubs);
  const std::optional<uint32_t> after = EstablishedSockets();
  if (before && after) result.established = *after - *before;
  std::fputs((options.json ? Json(options, result) : Text(options, result)).c_str(), stdout);
  return result.recorder.operations() > 0 ? 0 : 1;
}
