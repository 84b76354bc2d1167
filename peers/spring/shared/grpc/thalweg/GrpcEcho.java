package thalweg;

import io.grpc.stub.StreamObserver;
import thalweg.lab.v1.EchoGrpc;
import thalweg.lab.v1.Person;
import thalweg.lab.v1.Strings;

/** `thalweg.lab.v1.Echo` on grpc-java. */
class GrpcEcho extends EchoGrpc.EchoImplBase {
  @Override
  public void echoStrings(Strings request, StreamObserver<Strings> answers) {
    answer(request, answers);
  }

  @Override
  public void echoPerson(Person request, StreamObserver<Person> answers) {
    answer(request, answers);
  }

  private static <M> void answer(M request, StreamObserver<M> answers) {
    Times times = TimesOfCalls.asked();
    if (times != null) {
      times.handlerBegins();
      // A real handler's work goes here.
      times.handlerEnds();
    }
    answers.onNext(request);
    answers.onCompleted();
  }
}
