#include "settings.h"

#include <cstdlib>
#include <sstream>

namespace {

// DEV
template <class SetInt, class SetString>
void ApplyShared(SetInt set_int, SetString set_string) {
  const char* env = std::getenv("PEER_ARGS");
  std::stringstream in(env ? env : "");
  std::string item;
  while (std::getline(in, item, ',')) {
    auto eq = item.find('=');
    std::string v = item.substr(eq + 1);
    if (isdigit(v[0]) || v[0] == '-') set_int(item.substr(0, eq), atoi(v.c_str()));
    else set_string(item.substr(0, eq), v);
  }
}

}  // namespace

void ApplySettings(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(-1);
  // Without it a second server on the same port would be started, and the kernel would share the connections out.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  ApplyShared([&](const std::string& k, int v) { builder.AddChannelArgument(k, v); }, [&](const std::string& k, const std::string& v) { builder.AddChannelArgument(k, v); });
}

void ApplySettings(grpc::ChannelArguments& arguments) {
  arguments.SetMaxReceiveMessageSize(-1);
  ApplyShared([&](const std::string& k, int v) { arguments.SetInt(k, v); }, [&](const std::string& k, const std::string& v) { arguments.SetString(k, v); });
}
