package thalweg;

import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.grpc.server.ServerBuilderCustomizer;
import org.springframework.stereotype.Service;
import thalweg.lab.v1.EchoGrpc;
import thalweg.lab.v1.Person;
import thalweg.lab.v1.Strings;

/** `thalweg.lab.v1.Echo` on Spring gRPC. */
@Service
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
    Times times = Times.asked();
    if (times != null) {
      times.handlerBegins();
      // What a handler would do stands here.
      times.handlerEnds();
    }
    answers.onNext(request);
    answers.onCompleted();
  }

  @Configuration
  static class Tuned {
    @Bean
    ServerBuilderCustomizer<NettyServerBuilder> windows() {
      return builder -> builder.flowControlWindow(Settings.WINDOW_BYTES);
    }
  }
}
