package thalweg;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.util.List;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** The JSON API on Spring MVC, with records, as in its documentation. */
@RestController
class JsonEcho {
  record Strings(List<String> strings) {}

  record Person(String name, int age, List<String> hobbies, Address address) {}

  record Address(String city, String zipCode) {}

  @PostMapping("/v1/echo-strings")
  Strings strings(@RequestBody Strings body, HttpServletRequest request, HttpServletResponse response) {
    return recordTimes(body, request, response);
  }

  @PostMapping("/v1/echo-person")
  Person person(@RequestBody Person body, HttpServletRequest request, HttpServletResponse response) {
    return recordTimes(body, request, response);
  }

  private static <T> T recordTimes(T body, HttpServletRequest request, HttpServletResponse response) {
    if (request.getHeader(Times.HEADER) != null) {
      Times times = new Times();
      times.handlerStarted();
      // A real handler's work goes here.
      times.handlerEnded();
      response.setHeader(Times.HEADER, times.toString());
    }
    return body;
  }
}
