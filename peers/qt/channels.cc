#include "channels.h"

#include <QtCore/QDir>
#include <QtCore/QEventLoop>
#include <QtCore/QTimer>
#include <QtGrpc/QGrpcCallReply>
#include <QtGrpc/QGrpcHttp2Channel>

#include <chrono>
#include <stdexcept>

#include "common/misuse.h"
#include "common/recorder.h"
#include "messages.h"

namespace {

using grpc::testing::BenchmarkService::Client;

// Waits for the end of the first call.
void FinishFirst(const LoadOptions& options, QGrpcCallReply& call) {
  QEventLoop loop;
  QGrpcStatus status;
  const auto end = [&](const QGrpcStatus& with) {
    status = with;
    loop.quit();
  };
  QObject::connect(&call, &QGrpcOperation::finished, &loop, end);
  QTimer::singleShot(std::chrono::nanoseconds(options.timeout_ns), &loop, [&] { call.cancel(); });
  loop.exec();
  const bool timed_out = status.code() == QtGrpc::StatusCode::Cancelled;
  const std::string failed = options.target + ": the first call, grpc.testing.BenchmarkService/UnaryCall, ended with ";
  if (timed_out) throw std::runtime_error(failed + "DEADLINE_EXCEEDED: no answer came in time");
  if (!status.isOk()) {
    const int code = static_cast<int>(status.code());
    throw std::runtime_error(failed + CodeName(code) + ": " + status.message().toStdString());
  }
  const std::string wrong = WrongResponse(call, options.size);
  if (!wrong.empty()) throw std::runtime_error(failed + "DATA_LOSS: " + wrong);
}

}  // namespace

QUrl Address(const std::string& target) {
  constexpr std::string_view kUnix = "unix:";
  const QString text = QString::fromStdString(target);
  QUrl url;
  if (target.rfind(kUnix, 0) == 0) {
    url.setScheme(QStringLiteral("unix"));
    // A relative path would be relative to the folder for temporary files.
    url.setPath(QDir::current().absoluteFilePath(text.mid(kUnix.size())), QUrl::DecodedMode);
    return url;
  }
  url.setUrl(QStringLiteral("http://") + text, QUrl::StrictMode);
  if (!url.isValid() || url.host().isEmpty() || url.port() <= 0 || !url.path().isEmpty()) {
    throw Misuse("invalid target `" + target + "`; use HOST:PORT or unix:PATH");
  }
  return url;
}

Clients Connect(const LoadOptions& options) {
  const QUrl url = Address(options.target);
  Clients clients;
  for (uint32_t i = 0; i < options.connections; ++i) {
    clients.push_back(std::make_unique<Client>());
    clients.back()->attachChannel(std::make_shared<QGrpcHttp2Channel>(url));
  }
  const auto request = MakeRequest(options.size, options.size);
  for (const auto& client : clients) {
    const std::unique_ptr<QGrpcCallReply> call = client->UnaryCall(request);
    FinishFirst(options, *call);
  }
  return clients;
}
