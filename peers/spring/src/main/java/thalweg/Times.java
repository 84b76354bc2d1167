package thalweg;

import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import org.springframework.grpc.server.GlobalServerInterceptor;
import org.springframework.stereotype.Component;

/** The header `lab-times`: moments of a call at the server, by System.nanoTime(), which is CLOCK_MONOTONIC on Linux. */
final class Times {
  static final String HEADER = "lab-times";

  private static final Metadata.Key<String> KEY = Metadata.Key.of(HEADER, Metadata.ASCII_STRING_MARSHALLER);
  /** Of a call by gRPC that asks for times. */
  private static final Context.Key<Times> ASKED = Context.key(HEADER);

  private long decoded;
  private long handled;

  /** Those of the call by gRPC that this thread handles; null if it asks for none. */
  static Times asked() {
    return ASKED.get();
  }

  void handlerBegins() {
    decoded = System.nanoTime();
  }

  void handlerEnds() {
    handled = System.nanoTime();
  }

  @Override
  public String toString() {
    return "decoded=" + decoded + " handled=" + handled;
  }

  /** Gives those their times who ask for them; the calls of others go on as they are. */
  @Component
  @GlobalServerInterceptor
  static final class Interceptor implements ServerInterceptor {
    @Override
    public <Q, A> ServerCall.Listener<Q> interceptCall(
        ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
      if (!headers.containsKey(KEY)) return next.startCall(call, headers);
      Times times = new Times();
      ServerCall<Q, A> timed = new SimpleForwardingServerCall<>(call) {
        @Override
        public void sendHeaders(Metadata sent) {
          sent.put(KEY, times.toString());
          super.sendHeaders(sent);
        }
      };
      return Contexts.interceptCall(Context.current().withValue(ASKED, times), timed, headers, next);
    }
  }
}
