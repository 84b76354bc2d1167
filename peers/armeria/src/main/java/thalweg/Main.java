package thalweg;

import com.linecorp.armeria.common.Flags;
import com.linecorp.armeria.common.util.Version;
import com.linecorp.armeria.server.Server;
import com.linecorp.armeria.server.ServerBuilder;
import com.linecorp.armeria.server.grpc.GrpcService;
import com.linecorp.armeria.server.grpc.GrpcServiceBuilder;
import io.grpc.ServerInterceptors;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;

/** The commands of peers/README.md, on Armeria. */
public final class Main {
  private static final String ANNOTATED = "annotated";
  private static final String TRANSCODED = "transcoded";
  private static final List<String> VARIANTS = List.of(ANNOTATED, TRANSCODED);

  private Main() {}

  public static void main(String[] arguments) {
    String version = "Armeria " + Version.get("armeria", Main.class.getClassLoader()).artifactVersion()
        + " (grpc-java " + Jvm.versionOf(io.grpc.ServerServiceDefinition.class) + ")";
    if (!ServeArguments.shouldServe(arguments, version, VARIANTS, Main::settings)) return;
    serve(ServeArguments.of(Arrays.asList(arguments).subList(1, arguments.length), VARIANTS));
  }

  private static void serve(ServeArguments serveArguments) {
    GrpcServiceBuilder grpc = GrpcService.builder()
        .addService(ServerInterceptors.intercept(new GrpcEcho(), new TimesInterceptor()))
        .maxRequestMessageLength(Jvm.MESSAGE_BYTES_MAX)
        .enableHttpJsonTranscoding(serveArguments.variant().equals(TRANSCODED));
    ServerBuilder builder = Server.builder()
        .maxRequestLength(Jvm.MESSAGE_BYTES_MAX)
        .http2InitialConnectionWindowSize(Jvm.WINDOW_BYTES)
        .http2InitialStreamWindowSize(Jvm.WINDOW_BYTES)
        .gracefulShutdownTimeoutMillis(0, 0)
        .service(grpc.build());
    if (serveArguments.variant().equals(ANNOTATED)) builder.annotatedService(new JsonEcho());
    for (ServeArguments.Address address : List.of(serveArguments.grpc(), serveArguments.json())) {
      builder.http(new InetSocketAddress(address.host(), address.port()));
    }
    Server server = builder.build();
    server.start().join();
    // Without this, a JVM stopped by a signal exits with 143.
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      server.stop().join();
      Runtime.getRuntime().halt(0);
    }));
    int[] ports = server.activePorts().keySet().stream().mapToInt(InetSocketAddress::getPort).toArray();
    serveArguments.printListening(
        boundPort(serveArguments.grpc(), ports[0]), boundPort(serveArguments.json(), ports[ports.length - 1]));
  }

  /** Returns the bound port; ports have the order of the requested addresses. */
  private static int boundPort(ServeArguments.Address requested, int port) {
    return requested.port() == 0 ? port : requested.port();
  }

  private static void settings() {
    Jvm.line("window of a connection and of a stream (http2Initial…WindowSize)", "8 MiB", "the default is 1 MiB");
    Jvm.line("largest message (maxRequestLength, maxRequestMessageLength)", "64 MiB", "the default is 10 MiB");
    Jvm.line("handlers", "run on the event loop of their connection", "the default");
    Jvm.line("threads (numCommonWorkers)", String.valueOf(Flags.numCommonWorkers()), "the default: two for each processor");
    Jvm.line("transport (transportType)", Flags.transportType().name().toLowerCase(), "the default");
    Jvm.line("JSON", "`annotated`: records, by Jackson; `transcoded`: gRPC's methods by google.api.http", "the default is `annotated`");
    Jvm.lines();
  }
}
