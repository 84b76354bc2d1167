//! Random messages, for comparison with prost-reflect. The tests of `thalweg-protobuf-text` include this file.

use prost_reflect::prost::Message;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use thalweg_protobuf::wire::Reader;
use thalweg_protobuf::{MessageType, Schema, sources};

/// One message in the representations of both libraries.
pub(crate) struct Case<'a> {
    pub(crate) ours: MessageType<'a>,
    pub(crate) theirs: &'a MessageDescriptor,
    pub(crate) message: DynamicMessage,
    pub(crate) wire: Vec<u8>,
    pub(crate) seed: u64,
}

impl Case<'_> {
    /// Decodes `wire` with prost-reflect.
    pub(crate) fn decode(&self, wire: &[u8]) -> DynamicMessage {
        DynamicMessage::decode(self.theirs.clone(), wire).expect("it was written just now")
    }
}

/// Checks random messages of one type, each with its wire records in two orders.
pub(crate) fn compare(file: &str, full_name: &str, messages: u64, check: impl Fn(&Case<'_>)) {
    let read = |name: &str| match name {
        "everything.proto" => Some(include_str!("../proto/everything.proto").to_owned()),
        "extended.proto" => Some(include_str!("../proto/extended.proto").to_owned()),
        _ => None,
    };
    let set = sources::compile(&[file], read).expect("the file compiles");
    let schema = Schema::from_descriptor_set(&set).expect("a schema");
    let pool = DescriptorPool::decode(&*set).expect("a pool");
    let ours = schema.message(full_name).expect("declared in the file");
    let theirs = &pool.get_message_by_name(full_name).expect("declared in the file");
    let mut bytes = 0;
    for seed in 0..messages {
        let mut random = Random(seed);
        let wire = random.message(theirs, 4).encode_to_vec();
        bytes += wire.len();
        let shuffled = random.shuffle(&wire, ours);
        for wire in [wire, shuffled] {
            let message = DynamicMessage::decode(theirs.clone(), &*wire).expect("it was written just now");
            check(&Case { ours, theirs, message, wire, seed });
        }
    }
    // Not all of them are empty.
    assert!(bytes as u64 > 50 * messages, "{bytes} bytes in {messages} messages");
}

/// `splitmix64`
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Returns numbers of all lengths, including the limits.
    fn integer(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => i64::MAX as u64,
            3 => i64::MIN as u64,
            _ => {
                let bits = self.below(64);
                self.number() >> bits
            }
        }
    }

    fn message(&mut self, of: &MessageDescriptor, depth: u32) -> DynamicMessage {
        let mut message = DynamicMessage::new(of.clone());
        match of.full_name() {
            "google.protobuf.Timestamp" => {
                message.set_field_by_number(1, Value::I64(self.seconds(315_537_897_599) - 62_135_596_800));
                message.set_field_by_number(2, Value::I32(self.nanos()));
                return message;
            }
            "google.protobuf.Duration" => {
                let sign = if self.below(2) == 0 { 1 } else { -1 };
                message.set_field_by_number(1, Value::I64(self.seconds(315_576_000_000) * i64::from(sign)));
                message.set_field_by_number(2, Value::I32(self.nanos() * sign));
                return message;
            }
            "google.protobuf.DoubleValue" => {
                // prost-reflect writes null for an infinite one.
                message.set_field_by_number(1, Value::F64(self.below(1000) as f64 / 8.0));
                return message;
            }
            "google.protobuf.FieldMask" => {
                let paths = ["a", "foo_bar.baz_q", "x1.y"].map(|path| Value::String(path.to_owned()));
                message.set_field_by_number(
                    1,
                    Value::List(paths.into_iter().take(self.below(4) as usize).collect()),
                );
                return message;
            }
            "google.protobuf.Any" => {
                let name =
                    ["google.protobuf.Duration", "google.protobuf.FieldMask", "google.protobuf.Int64Value"]
                        [self.below(3) as usize];
                let inner = of.parent_pool().get_message_by_name(name).expect("it is in the pool");
                let inner = self.message(&inner, depth.saturating_sub(1));
                message.set_field_by_number(1, Value::String(format!("type.googleapis.com/{name}")));
                message.set_field_by_number(2, Value::Bytes(inner.encode_to_vec().into()));
                return message;
            }
            "google.protobuf.Value" => {
                let choice = if depth == 0 { self.below(4) } else { self.below(6) };
                let field = of.get_field(choice as u32 + 1).expect("a value of this kind");
                let value = match self.value(&field.kind(), depth) {
                    Value::F64(number) if !number.is_finite() => Value::F64(0.5),
                    Value::EnumNumber(_) => Value::EnumNumber(0),
                    value => value,
                };
                message.set_field(&field, value);
                return message;
            }
            _ => {}
        }
        let extensions = of.extensions().collect::<Vec<_>>();
        for field in of.fields() {
            let is_set = self.below(4) == 0 && !(depth == 0 && matches!(field.kind(), Kind::Message(_)));
            if is_set || field.cardinality() == Cardinality::Required {
                let value = self.field(&field, depth);
                message.set_field(&field, value);
            }
        }
        for extension in extensions {
            if self.below(4) == 0 && !(depth == 0 && matches!(extension.kind(), Kind::Message(_))) {
                let value = if extension.is_list() {
                    Value::List((0..=self.below(3)).map(|_| self.value(&extension.kind(), depth)).collect())
                } else {
                    self.value(&extension.kind(), depth)
                };
                message.set_extension(&extension, value);
            }
        }
        message
    }

    fn seconds(&mut self, bound: u64) -> i64 {
        self.below(bound).cast_signed()
    }

    /// Returns whole milliseconds, microseconds or nanoseconds.
    fn nanos(&mut self) -> i32 {
        let unit = [1_000_000, 1000, 1][self.below(3) as usize];
        self.below(1_000_000_000 / unit) as i32 * unit as i32
    }

    fn field(&mut self, field: &FieldDescriptor, depth: u32) -> Value {
        let len = self.below(4);
        if field.is_list() {
            return Value::List((0..len).map(|_| self.value(&field.kind(), depth)).collect());
        }
        if !field.is_map() {
            return self.value(&field.kind(), depth);
        }
        let Kind::Message(entry) = field.kind() else { panic!("a map's entries are messages") };
        let entries = (0..len).map(|_| {
            let key = match self.value(&entry.map_entry_key_field().kind(), depth) {
                Value::Bool(key) => MapKey::Bool(key),
                Value::I32(key) => MapKey::I32(key),
                Value::I64(key) => MapKey::I64(key),
                Value::U32(key) => MapKey::U32(key),
                Value::U64(key) => MapKey::U64(key),
                Value::String(key) => MapKey::String(key),
                _ => panic!("this is no key"),
            };
            (key, self.value(&entry.map_entry_value_field().kind(), depth))
        });
        Value::Map(entries.collect())
    }

    fn value(&mut self, kind: &Kind, depth: u32) -> Value {
        match kind {
            Kind::Double => Value::F64(self.double()),
            Kind::Float => Value::F32(self.double() as f32),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(self.integer() as i32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(self.integer().cast_signed()),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(self.integer() as u32),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(self.integer()),
            Kind::Bool => Value::Bool(self.below(2) == 1),
            Kind::String => Value::String(self.text()),
            Kind::Bytes => Value::Bytes((0..self.below(20)).map(|_| self.number() as u8).collect()),
            Kind::Enum(of) => {
                let values: Vec<i32> = of.values().map(|value| value.number()).collect();
                Value::EnumNumber(values[self.below(values.len() as u64) as usize])
            }
            Kind::Message(of) => Value::Message(self.message(of, depth.saturating_sub(1))),
        }
    }

    /// NaN is not equal to itself, and serde_json reads numbers of more than 15 digits one bit off. Other tests cover
    /// both.
    fn double(&mut self) -> f64 {
        match self.below(6) {
            0 => f64::INFINITY,
            1 => -0.0,
            2 => self.below(1000) as f64 / 8.0,
            3 => -1e22,
            _ => (self.below(2_000_000_000_000_000) as f64 - 1e15) / 1000.0,
        }
    }

    fn text(&mut self) -> String {
        let characters = ['a', 'z', ' ', '"', '\\', '\n', '\0', '\u{7f}', 'é', '😀', '/', '0'];
        let len = self.below(30);
        (0..len).map(|_| characters[self.below(characters.len() as u64) as usize]).collect()
    }

    /// Reorders the wire records, but not those of the same field or oneof: another encoding of the same message.
    fn shuffle(&mut self, wire: &[u8], of: MessageType<'_>) -> Vec<u8> {
        let mut records = Vec::new();
        let mut reader = Reader::new(wire);
        while !reader.is_empty() {
            let start = reader.offset();
            let tag = reader.tag().expect("it was written just now");
            reader.skip(tag, 100).expect("it was written just now");
            let oneof = of.field_by_number(tag.number).and_then(thalweg_protobuf::Field::oneof);
            let group = oneof
                .and_then(|oneof| oneof.fields().next())
                .map_or(tag.number, thalweg_protobuf::Field::number);
            records.push((group, reader.since(start).to_vec()));
        }
        for _ in 0..records.len() * 2 {
            let at = self.below(records.len() as u64) as usize;
            if at + 1 < records.len() && records[at].0 != records[at + 1].0 {
                records.swap(at, at + 1);
            }
        }
        records.into_iter().flat_map(|(_, record)| record).collect()
    }
}
