#include "load.h"

#include <QtCore/QCoreApplication>

#include <cstdio>

#include "channels.h"
#include "common/result.h"
#include "common/sockets.h"
#include "drive.h"

namespace {

// Suppresses Qt's log; the statuses contain the failures.
void LogNothing(QtMsgType /*type*/, const QMessageLogContext& /*context*/, const QString& /*message*/) {}

}  // namespace

LoadOptions ParseQtLoad(Flags flags) {
  LoadOptions options = ParseLoad(std::move(flags), {});
  Address(options.target);
  return options;
}

int RunLoad(const LoadOptions& options) {
  qInstallMessageHandler(LogNothing);
  char name[] = "peer";
  char* args[] = {name, nullptr};
  int count = 1;
  const QCoreApplication application(count, args);

  const std::optional<uint32_t> before = EstablishedSockets();
  const Clients clients = Connect(options);
  LoadResult result = Drive(options, clients);
  const std::optional<uint32_t> after = EstablishedSockets();
  if (before && after) result.established = *after - *before;
  std::fputs((options.json ? Json(options, result) : Text(options, result)).c_str(), stdout);
  // Skips the destruction of the application and its channels.
  const int code = result.recorder.operations() > 0 ? 0 : 1;
  std::fflush(nullptr);
  std::_Exit(code);
}
