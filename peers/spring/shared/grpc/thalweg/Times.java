package thalweg;

/**
 * The header `lab-times`: timestamps of a call on the server, from System.nanoTime(), which is CLOCK_MONOTONIC on
 * Linux.
 */
final class Times {
  static final String HEADER = "lab-times";

  private long decoded;
  private long handled;

  void handlerStarted() {
    decoded = System.nanoTime();
  }

  void handlerEnded() {
    handled = System.nanoTime();
  }

  @Override
  public String toString() {
    return "decoded=" + decoded + " handled=" + handled;
  }
}
