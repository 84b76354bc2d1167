package thalweg;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The conversions that JMH times. Messages are converted in turn. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Conversions {
  @Param("")
  public String folder;

  @Param("")
  public String data;

  @Param({Codec.PROTOBUF, Codec.JACKSON})
  public String name;

  private Codec codec;
  private Object[] objects;
  private byte[][] wires;
  private int next;

  @Setup
  public void read() throws IOException {
    codec = Codec.of(name, Path.of(folder), data);
    objects = codec.objects.toArray();
    wires = codec.wires.toArray(byte[][]::new);
  }

  @Benchmark
  public byte[] encode() throws IOException {
    return codec.encode(objects[nextIndex()]);
  }

  @Benchmark
  public Object decode() throws IOException {
    return codec.decode(wires[nextIndex()]);
  }

  @Benchmark
  public Object roundTrip() throws IOException {
    return codec.decode(codec.encode(objects[nextIndex()]));
  }

  private int nextIndex() {
    int nextIndex = next;
    next = nextIndex + 1 == objects.length ? 0 : nextIndex + 1;
    return nextIndex;
  }
}
