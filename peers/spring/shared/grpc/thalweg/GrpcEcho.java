package thalweg;

import io.grpc.stub.StreamObserver;
import thalweg.lab.v1.EchoGrpc;
import thalweg.lab.v1.Person;
import thalweg.lab.v1.Strings;

/** `thalweg.lab.v1.Echo` on grpc-java. */
class GrpcEcho extends EchoGrpc.EchoImplBase {
  @Override
  public void echoStrings(Strings request, StreamObserver<Strings> responses) {
    respond(request, responses);
  }

  @Override
  public void echoPerson(Person request, StreamObserver<Person> responses) {
    respond(request, responses);
  }

  private static <M> void respond(M request, StreamObserver<M> responses) {
    Times times = TimesInterceptor.current();
    if (times != null) {
      times.handlerStarted();
      // A real handler's work goes here.
      times.handlerEnded();
    }
    responses.onNext(request);
    responses.onCompleted();
  }
}
