package thalweg;

import com.google.protobuf.Message;
import com.google.protobuf.Parser;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import thalweg.shapes.LogRecord;
import thalweg.shapes.Order;
import thalweg.shapes.Person;
import thalweg.shapes.Samples;
import thalweg.shapes.SeveralData;
import thalweg.shapes.Visit;

/** The messages written by the lab: NAME.pb and NAME.jsonl for each line of messages.txt. */
final class Messages {
  /** A type in both codecs. */
  record Type(Parser<? extends Message> parser, Class<?> plain) {}

  private static final Map<String, Type> TYPES = Map.of(
      "shapes.Person", new Type(Person.parser(), Plain.Person.class),
      "shapes.SeveralData", new Type(SeveralData.parser(), Plain.SeveralData.class),
      "shapes.Order", new Type(Order.parser(), Plain.Order.class),
      "shapes.LogRecord", new Type(LogRecord.parser(), Plain.LogRecord.class),
      "shapes.Visit", new Type(Visit.parser(), Plain.Visit.class),
      "shapes.Samples", new Type(Samples.parser(), Plain.Samples.class));

  private Messages() {}

  static List<String> names(Path folder) throws IOException {
    return Files.readAllLines(folder.resolve("messages.txt")).stream().map(line -> line.split(" ")[0]).toList();
  }

  static Type type(Path folder, String name) throws IOException {
    for (String line : Files.readAllLines(folder.resolve("messages.txt"))) {
      String[] fields = line.split(" ");
      if (fields[0].equals(name)) {
        Type type = TYPES.get(fields[1]);
        if (type == null) throw new IOException("no class for " + fields[1]);
        return type;
      }
    }
    throw new IOException("messages.txt has no " + name);
  }

  /** Reads the messages and converts their strings from the received bytes to Strings. */
  static List<Message> protobuf(Path folder, String name) throws IOException {
    Parser<? extends Message> parser = type(folder, name).parser();
    List<Message> messages = new ArrayList<>();
    try (InputStream in = Files.newInputStream(folder.resolve(name + ".pb"))) {
      for (Message message; (message = parser.parseDelimitedFrom(in)) != null; ) {
        touch(message);
        messages.add(message);
      }
    }
    return messages;
  }

  static List<String> json(Path folder, String name) throws IOException {
    return Files.readAllLines(folder.resolve(name + ".jsonl")).stream().filter(line -> !line.isEmpty()).toList();
  }

  /** Calls a getter, which permanently converts a string's bytes to a String. */
  private static void touch(Object value) {
    if (value instanceof Message message) {
      message.getAllFields().values().forEach(Messages::touch);
    } else if (value instanceof List<?> list) {
      list.forEach(Messages::touch);
    }
  }
}
