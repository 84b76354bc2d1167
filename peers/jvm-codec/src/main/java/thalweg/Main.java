package thalweg;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.RuntimeVersion;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** `peer version` and `peer convert`, as defined in peers/README.md. */
public final class Main {
  private static final Map<String, String> OPERATIONS =
      Map.of("encode", "encode", "decode", "decode", "roundTrip", "round_trip");

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    List<String> args = List.of(arguments);
    if (args.equals(List.of("version"))) {
      System.out.println(version());
    } else if (args.size() >= 3 && args.get(0).equals("convert") && args.get(1).equals("--messages")
        && (args.size() == 3 || args.subList(3, args.size()).equals(List.of("--quick")))) {
      convert(Path.of(args.get(2)), args.size() > 3);
    } else if (args.size() == 4 && args.get(0).equals("loop")) {
      Loops.run(Path.of(args.get(1)), args.get(2), args.get(3));
    } else {
      System.err.println("not understood: " + String.join(" ", args) + "; try version, or convert --messages DIR [--quick]");
      System.exit(2);
    }
  }

  private static String version() {
    return "protobuf-java " + protobufVersion() + " and Jackson " + jacksonVersion() + " with Blackbird, on Java "
        + System.getProperty("java.version");
  }

  private static String protobufVersion() {
    return RuntimeVersion.OSS_MAJOR + "." + RuntimeVersion.OSS_MINOR + "." + RuntimeVersion.OSS_PATCH;
  }

  private static String jacksonVersion() {
    return com.fasterxml.jackson.databind.cfg.PackageVersion.VERSION.toString();
  }

  private static void convert(Path folder, boolean quick) throws Exception {
    PrintStream out = System.out;
    // Keeps output of libraries out of the result.
    System.setOut(System.err);
    // Within a second the compiler does not finish optimizing Jackson's round trips.
    int warmups = quick ? 3 : 5;
    int iterations = quick ? 3 : 5;
    TimeValue eachWarmup = TimeValue.milliseconds(quick ? 400 : 1000);
    TimeValue each = TimeValue.milliseconds(quick ? 200 : 1000);
    Options options = new OptionsBuilder()
        .include(Conversions.class.getName())
        .param("folder", folder.toAbsolutePath().toString())
        .param("data", Messages.names(folder).toArray(String[]::new))
        .forks(1)
        .warmupIterations(warmups).warmupTime(eachWarmup)
        .measurementIterations(iterations).measurementTime(each)
        .jvmArgs("-Xms1g", "-Xmx1g", "-XX:+UseSerialGC")
        .shouldFailOnError(true)
        .verbosity(VerboseMode.SILENT)
        .build();
    Collection<RunResult> results = new Runner(options).run();

    ObjectMapper mapper = new ObjectMapper();
    ObjectNode printed = mapper.createObjectNode();
    printed.put("schema", "thalweg.codec-peer/1");
    printed.put("version", version());
    printed.put("method", "Timed by JMH, a process for each line, " + warmups + " iterations of " + eachWarmup
        + " to warm up and " + iterations + " of " + each + " measured; bytes go into an array of their own each time."
        + " A Protobuf message keeps its size, so encoding it again does not compute it again.");
    ArrayNode codecs = printed.putArray("codecs");
    codec(codecs.addObject(), Codec.PROTOBUF, protobufVersion(), "protobuf", "generated classes");
    codec(codecs.addObject(), Codec.JACKSON, jacksonVersion(), "json", "plain classes, with Blackbird");
    ArrayNode lines = printed.putArray("lines");
    for (RunResult result : results) line(lines.addObject(), folder, result);
    Loops.all(folder, quick, printed);
    out.println(mapper.writeValueAsString(printed));
  }

  private static void codec(ObjectNode codec, String name, String version, String format, String about) {
    codec.put("name", name).put("version", version).put("format", format).put("dynamic", false);
    codec.put("decodes", "owned").put("about", about);
  }

  private static void line(ObjectNode line, Path folder, RunResult result) throws Exception {
    String data = result.getParams().getParam("data");
    String codec = result.getParams().getParam("name");
    String method = result.getParams().getBenchmark();
    line.put("data", data).put("codec", codec);
    line.put("operation", OPERATIONS.get(method.substring(method.lastIndexOf('.') + 1)));
    ArrayNode times = line.putArray("ns_per_conversion");
    for (BenchmarkResult fork : result.getBenchmarkResults()) {
      for (IterationResult iteration : fork.getIterationResults()) times.add(iteration.getPrimaryResult().getScore());
    }
    line.put("bytes", Codec.of(codec, folder, data).meanBytes());
  }
}
