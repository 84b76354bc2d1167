package thalweg;

import io.grpc.ServerInterceptor;
import io.grpc.netty.NettyServerBuilder;
import java.util.Arrays;
import java.util.List;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.grpc.server.GlobalServerInterceptor;
import org.springframework.grpc.server.ServerBuilderCustomizer;
import org.springframework.grpc.server.lifecycle.GrpcServerStartedEvent;

/** The commands of peers/README.md, on Spring gRPC and Spring MVC. */
@SpringBootApplication
public class Main {
  private static ServeArguments serveArguments;
  private int grpcPort;

  public static void main(String[] arguments) {
    String version = "Spring Boot " + SpringBootVersion.getVersion() + " with Spring MVC and Spring gRPC (grpc-java "
        + Jvm.versionOf(io.grpc.Grpc.class) + ")";
    if (!ServeArguments.shouldServe(arguments, version, List.of(), Main::settings)) return;
    serveArguments = ServeArguments.of(Arrays.asList(arguments).subList(1, arguments.length), List.of());
    SpringApplication.run(Main.class,
        "--spring.grpc.server.address=" + serveArguments.grpc().host(),
        "--spring.grpc.server.port=" + serveArguments.grpc().port(),
        "--server.address=" + serveArguments.json().host(), "--server.port=" + serveArguments.json().port());
    // Without this, a JVM stopped by a signal exits with 143. Runs after Spring has closed everything.
    SpringApplication.getShutdownHandlers().add(() -> Runtime.getRuntime().halt(0));
  }

  private static void settings() {
    Jvm.line("gRPC: window of a stream (flowControlWindow)", "8 MiB", "the default is 1 MiB");
    Jvm.line("gRPC: largest message (spring.grpc.server.inbound.message.max-size)", "64 MiB", "the default is 4 MiB");
    Jvm.line("gRPC: handlers", "run on grpc-java's executor, and not on Netty's threads", "the default");
    Jvm.line("JSON: HTTP versions (server.http2.enabled)", "HTTP/1.1, and HTTP/2 by prior knowledge", "Tomcat");
    Jvm.line("JSON: bodies", "records, by the Jackson that Spring Boot brings", "the default");
    Jvm.line("JSON: threads (server.tomcat.threads.max)", "up to 200, one for each request under way", "the default");
    Jvm.lines();
  }

  @Bean
  GrpcEcho echo() {
    return new GrpcEcho();
  }

  @Bean
  @GlobalServerInterceptor
  ServerInterceptor times() {
    return new TimesInterceptor();
  }

  @Bean
  ServerBuilderCustomizer<NettyServerBuilder> windows() {
    return builder -> builder.flowControlWindow(Jvm.WINDOW_BYTES);
  }

  @EventListener
  void started(GrpcServerStartedEvent event) {
    grpcPort = event.getPort();
  }

  @EventListener
  void ready(ApplicationReadyEvent event) {
    serveArguments.printListening(grpcPort,
        ((WebServerApplicationContext) event.getApplicationContext()).getWebServer().getPort());
  }
}
