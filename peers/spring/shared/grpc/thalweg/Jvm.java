package thalweg;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.stream.Collectors;

/** Lines of `settings`, including those about the JVM. */
final class Jvm {
  static final int WINDOW_BYTES = 8 << 20;
  static final int MESSAGE_BYTES_MAX = 64 << 20;

  private Jvm() {}

  static void line(String name, String value, String why) {
    System.out.println(String.join("\t", "server", name, value, why));
  }

  static void lines() {
    line("garbage collector", ManagementFactory.getGarbageCollectorMXBeans().stream()
        .map(GarbageCollectorMXBean::getName).collect(Collectors.joining(", ")), "the JVM's choice here");
    line("largest heap", (Runtime.getRuntime().maxMemory() >> 20) + " MiB", "the JVM's choice: a quarter of the memory");
    line("processors", String.valueOf(Runtime.getRuntime().availableProcessors()), "that the JVM sees");
  }

  static String versionOf(Class<?> type) {
    String version = type.getPackage().getImplementationVersion();
    return version == null ? "of unknown version" : version;
  }
}
