package thalweg;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.stream.Collectors;

/** What the stack is told, and the command `settings`, which says so. */
final class Settings {
  static final int WINDOW_BYTES = 8 << 20;

  private Settings() {}

  static void print() {
    line("gRPC: window of a stream (flowControlWindow)", "8 MiB", "the default is 1 MiB");
    line("gRPC: largest message (spring.grpc.server.inbound.message.max-size)", "64 MiB", "the default is 4 MiB");
    line("gRPC: handlers", "run on grpc-java's executor, and not on Netty's threads", "the default");
    line("JSON: HTTP versions (server.http2.enabled)", "HTTP/1.1, and HTTP/2 by prior knowledge", "Tomcat");
    line("JSON: bodies", "records, by the Jackson that Spring Boot brings", "the default");
    line("JSON: threads (server.tomcat.threads.max)", "up to 200, one for each request under way", "the default");
    line("garbage collector", ManagementFactory.getGarbageCollectorMXBeans().stream()
        .map(GarbageCollectorMXBean::getName).collect(Collectors.joining(", ")), "the JVM's choice here");
    line("largest heap", (Runtime.getRuntime().maxMemory() >> 20) + " MiB", "the JVM's choice: a quarter of the memory");
    line("processors", String.valueOf(Runtime.getRuntime().availableProcessors()), "that the JVM sees");
  }

  static String versionOf(Class<?> type) {
    String version = type.getPackage().getImplementationVersion();
    return version == null ? "of unknown version" : version;
  }

  private static void line(String name, String value, String why) {
    System.out.println(String.join("\t", "server", name, value, why));
  }
}
