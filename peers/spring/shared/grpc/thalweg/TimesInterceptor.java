package thalweg;

import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;

/** Records the times of gRPC calls that ask for them; other calls pass through. */
final class TimesInterceptor implements ServerInterceptor {
  private static final Metadata.Key<String> KEY = Metadata.Key.of(Times.HEADER, Metadata.ASCII_STRING_MARSHALLER);
  private static final Context.Key<Times> CURRENT = Context.key(Times.HEADER);

  /** Returns the times of this thread's current call, or null if the call does not ask for them. */
  static Times current() {
    return CURRENT.get();
  }

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
    return Contexts.interceptCall(Context.current().withValue(CURRENT, times), timed, headers, next);
  }
}
