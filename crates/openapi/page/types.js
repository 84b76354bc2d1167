// Types: short descriptions, and example messages.
const types = (() => {
  // Maximum nesting of an example.
  const DEPTH_MAX = 3;

  const WELL_KNOWN = {
    Timestamp: "2026-01-31T12:00:00Z",
    Duration: "0s",
    Struct: {},
    ListValue: [],
    Empty: {},
  };
  // Their JSON form.
  const FORMS = {
    Timestamp: '"2026-01-31T12:00:00Z"',
    Duration: '"1.5s"',
    FieldMask: '"author.name,title"',
    Struct: "an object",
    Value: "anything",
    ListValue: "an array",
    Any: '{"@type": …}',
    Empty: "{}",
    DoubleValue: "a number or null",
    FloatValue: "a number or null",
    Int32Value: "a number or null",
    UInt32Value: "a number or null",
    Int64Value: "a number as a string, or null",
    UInt64Value: "a number as a string, or null",
    BoolValue: "true, false or null",
    StringValue: "a string or null",
    BytesValue: "a base64 string, or null",
  };
  const LARGE = ["int64", "uint64", "sint64", "fixed64", "sfixed64"];
  const SCALARS = [
    ...LARGE,
    ...["double", "float", "int32", "uint32", "sint32", "fixed32", "sfixed32", "bool", "string", "bytes"],
  ];

  const isScalar = (kind) => SCALARS.includes(kind);
  const shortName = (fullName) => fullName.slice(fullName.lastIndexOf(".") + 1);

  // An example message, without fields that need not be set: those with presence, and those set by the server.
  function example(schema, fullName, around = []) {
    const known = wellKnown(fullName);
    if (known !== undefined) return WELL_KNOWN[known] ?? null;
    const chosen = new Set();
    const members = [];
    for (const field of schema.messages[fullName]?.fields ?? []) {
      if (field.isOutputOnly || field.isDeprecated || (field.isOptional && !field.isRequired)) continue;
      if (field.oneof !== undefined) {
        if (chosen.has(field.oneof)) continue;
        chosen.add(field.oneof);
      }
      const value = exampleOf(schema, field, [...around, fullName]);
      if (value !== undefined) members.push([field.jsonName, value]);
    }
    return Object.fromEntries(members);
  }

  function exampleOf(schema, field, around) {
    if (field.key !== undefined) return {};
    const value = one(schema, field.kind, around);
    if (value === undefined) return field.isRepeated ? [] : undefined;
    return field.isRepeated ? [value] : value;
  }

  function one(schema, kind, around) {
    if (LARGE.includes(kind)) return "0";
    if (kind === "bool") return false;
    if (kind === "string" || kind === "bytes") return "";
    if (isScalar(kind)) return 0;
    if (kind in schema.enums) return schema.enums[kind].values[0].name;
    const known = wellKnown(kind);
    // Values of any type are left to the user.
    if (known !== undefined) return WELL_KNOWN[known];
    return around.includes(kind) || around.length >= DEPTH_MAX ? undefined : example(schema, kind, around);
  }

  const wellKnown = (fullName) =>
    fullName.startsWith("google.protobuf.") ? shortName(fullName) : undefined;

  // A type and all types that it contains, each once.
  function reachable(schema, fullNames) {
    const found = new Set();
    const queue = [...fullNames];
    while (queue.length > 0) {
      const name = queue.shift();
      if (found.has(name) || !(name in schema.messages || name in schema.enums)) continue;
      found.add(name);
      for (const field of schema.messages[name]?.fields ?? []) queue.push(field.kind);
    }
    return [...found];
  }

  function callType({ isClientStreaming, isServerStreaming }) {
    if (isClientStreaming) return isServerStreaming ? "bidi stream" : "client stream";
    return isServerStreaming ? "server stream" : "unary";
  }

  // Short descriptions of types with their own JSON form.
  const formOf = (fullName) => FORMS[wellKnown(fullName)];

  return { example, formOf, reachable, callType, shortName, isScalar };
})();
