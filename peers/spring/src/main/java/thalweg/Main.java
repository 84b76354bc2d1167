package thalweg;

import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** The commands of peers/README.md. */
@SpringBootApplication
public class Main {
  private static final String COMMANDS = "version, variants, settings or serve";

  public static void main(String[] arguments) {
    List<String> words = List.of(arguments);
    String command = words.isEmpty() ? "" : words.get(0);
    if (command.equals("serve")) {
      // A JVM that is told to end says 143 by itself; these run when Spring has closed everything.
      SpringApplication.getShutdownHandlers().add(() -> Runtime.getRuntime().halt(0));
      SpringApplication.run(Main.class, properties(words.subList(1, words.size())));
      return;
    }
    if (words.size() != 1) refuse("not understood: `" + String.join(" ", words) + "`; the commands are " + COMMANDS);
    switch (command) {
      case "version" -> System.out.println(version());
      case "variants" -> System.out.println("server\nclient\njson http1 h2");
      case "settings" -> Settings.print();
      default -> refuse("there is no command `" + command + "`: " + COMMANDS);
    }
  }

  private static String version() {
    return "Spring Boot " + SpringBootVersion.getVersion() + " with Spring MVC and Spring gRPC (grpc-java "
        + Settings.versionOf(io.grpc.Grpc.class) + "), on Java " + System.getProperty("java.version");
  }

  /** The addresses of `serve --listen ADDR --json ADDR` as Spring names them. */
  private static String[] properties(List<String> words) {
    String listen = null;
    String json = null;
    for (int i = 0; i < words.size(); i += 2) {
      String value = i + 1 < words.size() ? words.get(i + 1) : "";
      switch (words.get(i)) {
        case "--listen" -> {
          if (listen != null) refuse("--listen: this stack has one listener for gRPC");
          listen = value;
        }
        case "--json" -> json = value;
        default -> refuse("serve: `" + words.get(i) + "` is not understood");
      }
    }
    if (listen == null || json == null) refuse("serve needs --listen HOST:PORT and --json HOST:PORT");
    String[] grpc = hostAndPort(listen);
    String[] http = hostAndPort(json);
    return new String[] {
      "--spring.grpc.server.address=" + grpc[0], "--spring.grpc.server.port=" + grpc[1],
      "--server.address=" + http[0], "--server.port=" + http[1],
    };
  }

  private static String[] hostAndPort(String address) {
    int colon = address.lastIndexOf(':');
    String port = address.substring(colon + 1);
    if (colon <= 0 || address.startsWith("unix") || !port.matches("[0-9]{1,5}") || Integer.parseInt(port) > 65535) {
      refuse("`" + address + "` is no HOST:PORT");
    }
    return new String[] {address.substring(0, colon), port};
  }

  private static void refuse(String why) {
    System.err.println("error: " + why);
    System.exit(2);
  }
}
