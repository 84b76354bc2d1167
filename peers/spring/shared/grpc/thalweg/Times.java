package thalweg;

/** The header `lab-times`: moments of a call at the server, by System.nanoTime(), which is CLOCK_MONOTONIC on Linux. */
final class Times {
  static final String HEADER = "lab-times";

  private long decoded;
  private long handled;

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
}
