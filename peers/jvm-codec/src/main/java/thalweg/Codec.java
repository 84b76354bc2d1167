package thalweg;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.module.blackbird.BlackbirdModule;
import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A codec and its messages, as objects and as bytes. */
abstract class Codec {
  static final String PROTOBUF = "protobuf-java";
  static final String JACKSON = "jackson-blackbird";

  final List<Object> objects = new ArrayList<>();
  final List<byte[]> wires = new ArrayList<>();

  static Codec of(String name, Path folder, String data) throws IOException {
    Codec codec = name.equals(PROTOBUF) ? new Protobuf(folder, data) : new Jackson(folder, data);
    for (Object object : codec.objects) {
      byte[] wire = codec.encode(object);
      if (!codec.same(object, codec.decode(wire))) throw new IOException(name + " reads " + data + " otherwise than it wrote it");
      codec.wires.add(wire);
    }
    return codec;
  }

  abstract byte[] encode(Object object) throws IOException;

  abstract Object decode(byte[] wire) throws IOException;

  abstract boolean same(Object object, Object decoded) throws IOException;

  double meanBytes() {
    return wires.stream().mapToInt(wire -> wire.length).average().orElse(0);
  }

  private static final class Protobuf extends Codec {
    private final Parser<? extends Message> parser;

    Protobuf(Path folder, String data) throws IOException {
      parser = Messages.type(folder, data).parser();
      objects.addAll(Messages.protobuf(folder, data));
    }

    @Override
    byte[] encode(Object object) {
      return ((Message) object).toByteArray();
    }

    @Override
    Object decode(byte[] wire) throws IOException {
      return parser.parseFrom(wire);
    }

    @Override
    boolean same(Object object, Object decoded) {
      return object.equals(decoded);
    }
  }

  private static final class Jackson extends Codec {
    private final ObjectReader reader;
    private final ObjectWriter writer;

    Jackson(Path folder, String data) throws IOException {
      ObjectMapper mapper = new ObjectMapper().registerModule(new BlackbirdModule());
      Class<?> plain = Messages.type(folder, data).plain();
      reader = mapper.readerFor(plain);
      writer = mapper.writerFor(plain);
      for (String line : Messages.json(folder, data)) objects.add(reader.readValue(line));
    }

    @Override
    byte[] encode(Object object) throws IOException {
      return writer.writeValueAsBytes(object);
    }

    @Override
    Object decode(byte[] wire) throws IOException {
      return reader.readValue(wire);
    }

    @Override
    boolean same(Object object, Object decoded) throws IOException {
      return java.util.Arrays.equals(encode(object), encode(decoded));
    }
  }
}
