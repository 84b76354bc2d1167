package thalweg;

import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.Environment;
import org.springframework.grpc.server.lifecycle.GrpcServerStartedEvent;
import org.springframework.stereotype.Component;

/** Says where the servers listen, when both do. */
@Component
class Listening {
  private final Environment environment;
  private int grpcPort;

  Listening(Environment environment) {
    this.environment = environment;
  }

  @EventListener
  void started(GrpcServerStartedEvent event) {
    grpcPort = event.getPort();
  }

  @EventListener
  void ready(ApplicationReadyEvent event) {
    int jsonPort = ((WebServerApplicationContext) event.getApplicationContext()).getWebServer().getPort();
    String grpcHost = environment.getProperty("spring.grpc.server.address");
    System.out.println("listening on " + grpcHost + ":" + grpcPort);
    System.out.println("json on " + environment.getProperty("server.address") + ":" + jsonPort);
    System.out.flush();
  }
}
