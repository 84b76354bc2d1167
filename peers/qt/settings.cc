#include "settings.h"

#include <QtCore/QtGlobal>
#include <QtGrpc/qtgrpcversion.h>

#include <string>

#include "common/program.h"
#include "limits.h"

namespace {

std::string Limit(uint64_t bytes, uint64_t messages) {
  return std::to_string(messages) + " messages or " + std::to_string(bytes >> 10) + " KiB of payload";
}

}  // namespace

void PrintSettings() {
  const auto print = [](const std::string& name, const std::string& value, const std::string& why) {
    PrintSetting("client", name, value, why);
  };
  print("threads", "one, with the event loop (QCoreApplication)", "a channel belongs to the thread that made it");
  print("channels (QGrpcHttp2Channel)", "one for each connection", "a channel is a connection");
  print("options of channels and calls (QGrpcChannelOptions, QGrpcCallOptions)", "none", "none of them is about speed");
  print("windows, largest frame (QHttp2Configuration)", "the defaults of Qt Network", "Qt GRPC has no option for them");
  print("TCP_NODELAY (QAbstractSocket::LowDelayOption)", "off", "Qt GRPC does not set it and has no option for it");
  print("longest stream of requests", Limit(kStreamBytes, kStreamMessages),
        "Qt keeps all that it is given and does not say what it has sent; the next stream follows the answer");
  print("handing over of requests", Limit(kTurnBytes, kTurnMessages) + " in a turn of the event loop",
        "sending is done between the turns");
  print("deadlines", "none on calls", "--timeout is watched by a timer of the peer's");
  print("serializer", "QProtobufSerializer", "the default");
  print("messages", "requests made once and used again, replies made anew",
        "a QByteArray is shared, and read() makes what it returns");
  print("payload copies", "one to encode; to decode, as often as Qt Network and Qt GRPC hand bytes on", "");
  print("compression", "off", "Qt GRPC has none");
  print("log (qInstallMessageHandler)", "off", "what failed is in the statuses");
  print("transport", "plain HTTP/2", "TLS of Qt GRPC takes the server's name from the address, and no other");
  print("allocator", "the system's", "the default");
  print("build", std::string("g++ ") + __VERSION__ + ", " + PEER_FLAGS + "; Qt " + qVersion() + ", Qt GRPC " +
                     QTGRPC_VERSION_STR + " as shared libraries of Debian 13", "Debian's own flags for Qt");
}
