package thalweg;

import com.linecorp.armeria.server.ServiceRequestContext;
import com.linecorp.armeria.server.annotation.ConsumesJson;
import com.linecorp.armeria.server.annotation.Post;
import com.linecorp.armeria.server.annotation.ProducesJson;
import java.util.List;

/** The JSON API as annotated methods with records, as in Armeria's documentation. */
@ConsumesJson
@ProducesJson
class JsonEcho {
  record Strings(List<String> strings) {}

  record Person(String name, int age, List<String> hobbies, Address address) {}

  record Address(String city, String zipCode) {}

  @Post("/v1/echo-strings")
  public Strings strings(ServiceRequestContext context, Strings body) {
    return recordTimes(body, context);
  }

  @Post("/v1/echo-person")
  public Person person(ServiceRequestContext context, Person body) {
    return recordTimes(body, context);
  }

  private static <T> T recordTimes(T body, ServiceRequestContext context) {
    if (context.request().headers().contains(Times.HEADER)) {
      Times times = new Times();
      times.handlerStarted();
      // A real handler's work goes here.
      times.handlerEnded();
      context.setAdditionalResponseHeader(Times.HEADER, times.toString());
    }
    return body;
  }
}
