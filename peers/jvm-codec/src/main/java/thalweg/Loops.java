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
 * Round trips in a plain loop, as many published benchmarks do it: a short warm-up, then 10, 100, … conversions in one
 * process. The clock is read before and after each loop. The JIT compiler changes the code in the meantime. Results are
 * used, so that conversions are not optimized away.
 */
final class Loops {
  /** The message of the published benchmark. */
  private static final String DATA = "person-sparse";
  private static final int WARM_UPS = 50;
  private static final int MOST = 10_000_000;

  /** The last decoded object; stored so that its allocation cannot be optimized away. */
  private static volatile Object decoded;

  private Loops() {}

  /** Runs this program once per codec and round; does nothing if the message is missing. */
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
        String[] fields = line.split(" ");
        ObjectNode loop = loops.addObject();
        loop.put("data", DATA).put("codec", codec).put("operation", "round_trip").put("round", round);
        loop.put("conversions", Long.parseLong(fields[0])).put("elapsed_ns", Long.parseLong(fields[1]));
      }
    }
    int status = process.waitFor();
    if (status != 0) throw new IOException("a loop of " + codec + " ended with " + status);
  }

  /** Prints a line per loop: the number of conversions and ns. */
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
