package thalweg;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.util.List;

/**
 * Round trips in a plain loop, as they are often published: few to warm up, then ten, a hundred and so on, one after
 * the other in one process, and the clock before and after each loop. What the compiler makes of the code changes
 * meanwhile; what is converted is used, so that it is not left out.
 */
final class Loops {
  /** The message that it was published of. */
  private static final String DATA = "person-sparse";
  private static final int WARM_UPS = 50;
  private static final int MOST = 10_000_000;

  /** What was decoded last: an object that nobody could see need not be made. */
  private static volatile Object decoded;

  private Loops() {}

  /** A process for each codec and round, which is this program again; nothing where the message is not there. */
  static void all(Path folder, boolean quick, ObjectNode printed) throws IOException, InterruptedException {
    if (!Messages.names(folder).contains(DATA)) return;
    ArrayNode loops = printed.putArray("loops");
    for (int round = 0; round < (quick ? 1 : 3); round++) {
      for (String codec : List.of(Codec.PROTOBUF, Codec.JACKSON)) one(folder, codec, round, loops);
    }
  }

  private static void one(Path folder, String codec, int round, ArrayNode loops) throws IOException, InterruptedException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    Process process = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), Main.class.getName(),
        "loop", folder.toString(), codec, DATA).redirectError(Redirect.INHERIT).start();
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
      for (String line; (line = lines.readLine()) != null; ) {
        String[] words = line.split(" ");
        ObjectNode loop = loops.addObject();
        loop.put("data", DATA).put("codec", codec).put("operation", "round_trip").put("round", round);
        loop.put("conversions", Long.parseLong(words[0])).put("elapsed_ns", Long.parseLong(words[1]));
      }
    }
    int status = process.waitFor();
    if (status != 0) throw new IOException("a loop of " + codec + " ended with " + status);
  }

  /** Prints a line for each loop: how many conversions it had, and ns. */
  static void run(Path folder, String name, String data) throws IOException {
    Codec codec = Codec.of(name, folder, data);
    Object object = codec.objects.get(0);
    for (int i = 0; i < WARM_UPS; i++) decoded = codec.decode(codec.encode(object));
    for (int count = 10; count <= MOST; count *= 10) {
      long began = System.nanoTime();
      for (int i = 0; i < count; i++) decoded = codec.decode(codec.encode(object));
      System.out.println(count + " " + (System.nanoTime() - began));
    }
  }
}
