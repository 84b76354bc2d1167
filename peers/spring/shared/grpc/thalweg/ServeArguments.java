package thalweg;

import java.util.List;

/** The arguments of `serve --listen ADDR --json ADDR`, and the other commands of peers/README.md, which have none. */
record ServeArguments(Address grpc, Address json, String variant) {
  record Address(String host, int port) {
    static Address of(String text) {
      int colon = text.lastIndexOf(':');
      String port = text.substring(colon + 1);
      if (colon <= 0 || text.startsWith("unix") || !port.matches("[0-9]{1,5}") || Integer.parseInt(port) > 65535) {
        fail("`" + text + "` is no HOST:PORT");
      }
      return new Address(text.substring(0, colon), Integer.parseInt(port));
    }
  }

  /** Parses the arguments after `serve`; `variants` is empty for a program without variants. */
  static ServeArguments of(List<String> arguments, List<String> variants) {
    Address grpc = null;
    Address json = null;
    String variant = variants.isEmpty() ? null : variants.get(0);
    for (int i = 0; i < arguments.size(); i += 2) {
      if (i + 1 == arguments.size()) fail("serve: `" + arguments.get(i) + "` stands alone");
      String value = arguments.get(i + 1);
      switch (arguments.get(i)) {
        case "--listen" -> {
          if (grpc != null) fail("--listen: this stack has one listener for gRPC");
          grpc = Address.of(value);
        }
        case "--json" -> json = Address.of(value);
        case "--variant" -> {
          if (!variants.contains(value)) fail("--variant: there is no `" + value + "`, but " + variants);
          variant = value;
        }
        default -> fail("serve: unexpected argument `" + arguments.get(i) + "`");
      }
    }
    if (grpc == null || json == null) fail("serve needs --listen HOST:PORT and --json HOST:PORT");
    return new ServeArguments(grpc, json, variant);
  }

  /** Runs `version`, `variants` and `settings`; returns true for `serve` and rejects anything else. */
  static boolean shouldServe(String[] arguments, String version, List<String> variants, Runnable settings) {
    String command = arguments.length == 0 ? "" : arguments[0];
    if (command.equals("serve")) return true;
    String commands = "the commands are version, variants, settings and serve";
    if (arguments.length != 1) fail("not understood: `" + String.join(" ", arguments) + "`; " + commands);
    switch (command) {
      case "version" -> System.out.println(version + ", on Java " + System.getProperty("java.version"));
      case "variants" -> {
        System.out.println(("server " + String.join(" ", variants)).strip());
        System.out.println("client\njson http1 h2");
      }
      case "settings" -> settings.run();
      default -> fail("unknown command `" + command + "`; " + commands);
    }
    return false;
  }

  /** Prints where the servers listen, once both do. */
  void printListening(int grpcPort, int jsonPort) {
    System.out.println("listening on " + grpc.host + ":" + grpcPort);
    System.out.println("json on " + json.host + ":" + jsonPort);
    System.out.flush();
  }

  private static void fail(String reason) {
    System.err.println("error: " + reason);
    System.exit(2);
  }
}
