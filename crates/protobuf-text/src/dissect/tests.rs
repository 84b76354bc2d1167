//! Dissecting messages and assembling them again.

use thalweg_protobuf::wire::WireType;

use super::*;

fn taken_apart(bytes: &[u8]) -> Message<'static> {
    dissect(bytes, Span::all(bytes), None, &Limits::default())
}

/// The documented example: `Person { name: "polar penguin", age: 20 }`.
#[test]
fn published_example_is_dissected() {
    let input = b"\x0A\x0D\x70\x6F\x6C\x61\x72\x20\x70\x65\x6E\x67\x75\x69\x6E\x10\x14";
    let message = taken_apart(input);
    assert_eq!(message.problem, None);
    let [name, age] = &message.records[..] else { panic!("{message:?}") };

    assert_eq!((name.tag.value, name.tag.span), (0x0a, Span { start: 0, end: 1 }));
    assert_eq!((name.tag.number(), name.tag.wire_type()), (1, Some(WireType::Len)));
    let Value::Len { length, payload, message: None } = &name.value else { panic!("{name:?}") };
    assert_eq!((length.value, length.span), (13, Span { start: 1, end: 2 }));
    assert_eq!((*payload, payload.of(input)), (Span { start: 2, end: 15 }, &b"polar penguin"[..]));
    assert_eq!(name.value.readings(input)[0].to_string(), "\"polar penguin\" (string)");

    assert_eq!((age.tag.value, age.tag.span), (0x10, Span { start: 15, end: 16 }));
    assert_eq!((age.tag.number(), age.tag.wire_type()), (2, Some(WireType::Varint)));
    let Value::Varint(value) = &age.value else { panic!("{age:?}") };
    assert_eq!((value.value, value.span), (20, Span { start: 16, end: 17 }));
}

#[test]
fn malformed_message_keeps_the_records_before_the_problem() {
    let check = |bytes: &[u8], records: usize, offset: usize, what: &str| {
        let message = taken_apart(bytes);
        let [problem] = message.problems()[..] else { panic!("{bytes:02x?}: {message:?}") };
        assert_eq!((message.records.len(), problem.offset), (records, offset), "{bytes:02x?}: {problem}");
        assert!(problem.to_string().contains(what), "{what:?} in {problem}");
    };
    check(b"\x10\x14\x80", 1, 2, "the tag is truncated: only 1 byte is left");
    check(b"\x10", 0, 1, "the varint is truncated: no bytes are left");
    check(b"\x0a", 0, 1, "the length is truncated");
    check(b"\x10\x14\x0a\x05ab", 1, 3, "the length is 5 bytes, but only 2 bytes are left");
    check(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, 1, "18446744073709551615 bytes");
    check(b"\x09\0\0\0", 0, 1, "the 8-byte value is truncated: only 3");
    check(b"\x0d", 0, 1, "the 4-byte value is truncated");
    check(b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0, 1, "the varint is longer than 10 bytes");
    check(b"\0\0", 0, 0, "invalid field number 0");
    check(b"\x80\x80\x80\x80\x10\x01", 0, 0, "invalid field number 536870912");
    check(b"\x0e", 0, 0, "invalid wire type 6 of field 1");
    check(b"\x0c", 0, 0, "end of group 1, which is not open");
    check(b"\x0b\x10\x01\x14", 1, 3, "end of group 2, but group 1 is open");
    check(b"\x0b\x10\x01", 1, 3, "group 1 is not closed");
    check(&[0x0b; 101], 1, 100, "101 levels deep");
}

#[test]
fn a_problem_keeps_the_tag_and_the_length_before_it() {
    let message = taken_apart(b"\x10\x14\x0a\x05ab");
    let problem = message.problem.as_ref().unwrap();
    assert_eq!(problem.tag.map(|tag| (tag.number(), tag.span.start)), Some((1, 2)));
    assert_eq!(problem.length.map(|length| length.value), Some(5));
    assert_eq!(message.rest(), Span { start: 2, end: 6 });
}

#[test]
fn payloads_that_parse_completely_are_nested_messages() {
    // Field 1 is a message with a string; field 2 is text that is not a message.
    let input = b"\x0a\x05\x0a\x03abc\x12\x03abc";
    let message = taken_apart(input);
    let inner = message.records[0].value.message().unwrap();
    assert_eq!((inner.span, inner.records.len()), (Span { start: 2, end: 7 }, 1));
    assert!(message.records[1].value.message().is_none());
}

#[test]
fn depth_and_record_count_are_limited() {
    let mut nested = Vec::new();
    for _ in 0..150 {
        let mut outer = vec![0x0a];
        let mut len = nested.len();
        while len > 0x7f {
            outer.push(len as u8 | 0x80);
            len >>= 7;
        }
        outer.push(len as u8);
        outer.extend(nested);
        nested = outer;
    }
    let message = taken_apart(&nested);
    let mut depth = 0;
    let mut at = &message;
    while let Some(inner) = at.records.first().and_then(|record| record.value.message()) {
        (at, depth) = (inner, depth + 1);
    }
    assert_eq!(depth, Limits::default().depth_max);

    let limits = Limits::default().records_max(10);
    let input = [0x10, 0x01].repeat(11);
    let message = dissect(&input, Span::all(&input), None, &limits);
    assert_eq!(message.records.len(), 10);
    assert!(message.problem.is_some_and(|problem| problem.offset == 20));
}

#[test]
fn varints_report_their_encoded_length() {
    let message = taken_apart(b"\x90\x80\x00\x94\x00\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
    let [long, overflowing] = &message.records[..] else { panic!("{message:?}") };
    assert_eq!((long.tag.value, long.tag.excess_bytes()), (0x10, 2));
    let Value::Varint(value) = &long.value else { panic!("{long:?}") };
    assert_eq!((value.value, value.excess_bytes(), value.overflows), (20, 1, false));
    let Value::Varint(value) = &overflowing.value else { panic!("{overflowing:?}") };
    assert!(value.overflows);
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % below
    }

    fn varint(&mut self, value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        thalweg_protobuf::wire::put_varint(&mut bytes, value);
        // Occasionally longer than necessary.
        while self.below(12) == 0 && bytes.len() < 5 {
            *bytes.last_mut().unwrap() |= 0x80;
            bytes.push(0);
        }
        bytes
    }

    fn number(&mut self) -> u64 {
        let bits = self.below(64);
        (self.below(usize::MAX) as u64) >> bits
    }

    /// Returns a random well-formed message.
    fn message(&mut self, depth: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..self.below(6) {
            let number = (1 + self.number() % 0x1fff_ffff) >> self.below(29);
            let number = number.max(1);
            let wire_type = [0, 1, 2, 2, 2, 3, 5][self.below(7)];
            bytes.extend(self.varint(number << 3 | wire_type));
            match wire_type {
                0 => {
                    let value = self.number();
                    bytes.extend(self.varint(value));
                }
                1 => bytes.extend(self.number().to_le_bytes()),
                5 => bytes.extend((self.number() as u32).to_le_bytes()),
                2 => {
                    let payload = match self.below(3) {
                        0 if depth > 0 => self.message(depth - 1),
                        1 => (0..self.below(50)).map(|_| b' ' + self.below(95) as u8).collect(),
                        _ => (0..self.below(50)).map(|_| self.below(256) as u8).collect(),
                    };
                    bytes.extend(self.varint(payload.len() as u64));
                    bytes.extend(payload);
                }
                _ => {
                    if depth > 0 {
                        bytes.extend(self.message(depth - 1));
                    }
                    bytes.extend(self.varint(number << 3 | 4));
                }
            }
        }
        bytes
    }
}

#[test]
fn well_formed_messages_round_trip_through_text() {
    let mut random = Random(2);
    for _ in 0..5_000 {
        let input = random.message(5);
        let message = taken_apart(&input);
        assert_eq!(message.problems(), Vec::<&Problem>::new(), "{input:02x?}");
        let text = text::write(&input, &message);
        assert_eq!(text::assemble(&text).as_ref(), Ok(&input), "{text}");
    }
}

/// Random bytes, and bytes similar to messages, survive conversion to text and back.
#[test]
fn any_input_round_trips_through_text() {
    use super::framing::{Framing, split};

    let mut random = Random(1);
    for round in 0..20_000 {
        let len = random.below(60);
        let input: Vec<u8> = (0..len)
            .map(|_| match round % 3 {
                0 => random.below(256) as u8,
                // Tags and lengths of small fields are frequent.
                1 => random.below(64) as u8,
                _ => [0, 1, 2, 8, 10, 11, 12, 13, 16, 0x80, 0xff, b'a'][random.below(12)],
            })
            .collect();
        for framing in Framing::ALL {
            let frames = split(&input, framing, &Limits::default());
            let limits = Limits { depth_max: random.below(5), records_max: 1 + random.below(30) };
            let messages: Vec<_> = frames
                .frames
                .iter()
                .map(|frame| (random.below(8) > 0).then(|| dissect(&input, frame.payload, None, &limits)))
                .collect();
            let text = text::write_frames(&input, &frames, &messages);
            assert_eq!(text::assemble(&text).as_ref(), Ok(&input), "{input:02x?} as {framing:?}:\n{text}");
        }
    }
}
