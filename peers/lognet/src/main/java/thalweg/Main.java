package thalweg;

import io.grpc.ServerInterceptor;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.lognet.springboot.grpc.GRpcGlobalInterceptor;
import org.lognet.springboot.grpc.GRpcService;
import org.lognet.springboot.grpc.context.GRpcServerInitializedEvent;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.context.WebServerApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;

/** The commands of peers/README.md, on LogNet's starter and Spring MVC. */
@SpringBootApplication
public class Main {
  private static ServeArguments serveArguments;
  private int grpcPort;
  private int jsonPort;

  public static void main(String[] arguments) {
    String version = "LogNet's grpc-spring-boot-starter " + version() + " (grpc-java "
        + Jvm.versionOf(io.grpc.Grpc.class) + ") beside Spring MVC, on Spring Boot " + SpringBootVersion.getVersion();
    if (!ServeArguments.shouldServe(arguments, version, List.of(), Main::settings)) return;
    serveArguments = ServeArguments.of(Arrays.asList(arguments).subList(1, arguments.length), List.of());
    SpringApplication.run(Main.class,
        "--grpc.netty-server.primary-listen-address="
            + serveArguments.grpc().host() + ":" + serveArguments.grpc().port(),
        "--server.address=" + serveArguments.json().host(), "--server.port=" + serveArguments.json().port());
    // Without this, a JVM stopped by a signal exits with 143. Runs after Spring has closed everything.
    SpringApplication.getShutdownHandlers().add(() -> Runtime.getRuntime().halt(0));
  }

  /** Reads the version from a property, because the jar does not contain it. */
  private static String version() {
    try (InputStream stream = Main.class.getResourceAsStream("/application.properties")) {
      Properties properties = new Properties();
      properties.load(stream);
      return properties.getProperty("lognet.version");
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static void settings() {
    Jvm.line("gRPC: window of a stream (grpc.netty-server.flow-control-window)", "8 MiB", "the default is 1 MiB");
    Jvm.line("gRPC: largest message (grpc.netty-server.max-inbound-message-size)", "64 MiB", "the default is 4 MiB");
    Jvm.line("gRPC: handlers", "run on grpc-java's executor, and not on Netty's threads", "the default");
    Jvm.line("JSON: HTTP versions (server.http2.enabled)", "HTTP/1.1, and HTTP/2 by prior knowledge", "Tomcat");
    Jvm.line("JSON: bodies", "records, by the Jackson that Spring Boot brings", "the default");
    Jvm.line("JSON: threads (server.tomcat.threads.max)", "up to 200, one for each request under way", "the default");
    Jvm.lines();
  }

  @GRpcService
  static class Echo extends GrpcEcho {}

  @Bean
  @GRpcGlobalInterceptor
  ServerInterceptor times() {
    return new TimesInterceptor();
  }

  @EventListener
  void started(GRpcServerInitializedEvent event) {
    grpcPort = event.getServer().getPort();
    reportPorts();
  }

  @EventListener
  void ready(ApplicationReadyEvent event) {
    jsonPort = ((WebServerApplicationContext) event.getApplicationContext()).getWebServer().getPort();
    reportPorts();
  }

  /** Reports the ports once both servers listen; the starter's starts at any time. */
  private void reportPorts() {
    if (grpcPort != 0 && jsonPort != 0) serveArguments.printListening(grpcPort, jsonPort);
  }
}
