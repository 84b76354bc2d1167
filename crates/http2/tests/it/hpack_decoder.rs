//! The decoder's errors and bounds, and the promises of its version.

use thalweg_http2::hpack::{DecodeError, DecodeOutcome, Decoder};
use thalweg_http2::{FieldList, Indexing};

/// Builds header blocks from representations, without Huffman coding. Lengths and sizes stay below their prefix's
/// maximum, except in size updates.
#[derive(Clone, Default)]
struct BlockBuilder(Vec<u8>);

impl BlockBuilder {
    fn new() -> Self {
        Self::default()
    }

    fn size_update(mut self, size: usize) -> Self {
        if size < 31 {
            self.0.push(0x20 | size as u8);
        } else {
            let rest = size - 31;
            assert!(rest < 1 << 14);
            self.0.extend([0x3f, 0x80 | rest as u8, (rest >> 7) as u8]);
        }
        self
    }

    fn indexed(mut self, index: u8) -> Self {
        self.0.push(0x80 | index);
        self
    }

    fn literal(mut self, pattern: u8, name: &str, value: &str) -> Self {
        self.0.push(pattern);
        for string in [name, value] {
            self.0.push(string.len() as u8);
            self.0.extend(string.as_bytes());
        }
        self
    }

    fn insert(self, name: &str, value: &str) -> Self {
        self.literal(0x40, name, value)
    }
}

/// An action on a decoder.
enum Step {
    SetMax(usize),
    Decode(BlockBuilder, Result<DecodeOutcome, DecodeError>),
}
use Step::{Decode, SetMax};

const OK: Result<DecodeOutcome, DecodeError> = Ok(DecodeOutcome::Complete);

fn check(steps: impl IntoIterator<Item = Step>) {
    let mut decoder = Decoder::new(4096);
    let mut fields = FieldList::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            SetMax(size) => decoder.set_max_table_size(size),
            Decode(block, expected) => {
                let outcome = decoder.decode(&block.0, 16 * 1024, &mut fields);
                assert_eq!(outcome, expected, "step {number}: {:02x?}", block.0);
                assert!(outcome.is_ok() || fields.is_empty());
            }
        }
    }
}

fn block() -> BlockBuilder {
    BlockBuilder::new()
}

#[test]
fn size_updates_are_at_the_start_and_at_most_two() {
    check([Decode(block().size_update(100).indexed(2), OK)]);
    check([Decode(block().size_update(0).size_update(4096).indexed(2), OK)]);
    check([Decode(block().size_update(100), OK)]);
    let misplaced = Err(DecodeError::SizeUpdateMisplaced);
    check([Decode(block().size_update(0).size_update(1).size_update(2), misplaced)]);
    check([Decode(block().indexed(2).size_update(100), misplaced)]);
    check([Decode(block().size_update(0).literal(0, "a", "b").size_update(1), misplaced)]);
}

#[test]
fn size_update_above_the_setting_is_an_error() {
    check([Decode(block().size_update(4097), Err(DecodeError::SizeUpdateTooLarge))]);
    check([SetMax(8192), Decode(block().size_update(8192), OK)]);
    check([
        SetMax(100),
        Decode(block().size_update(100), OK),
        Decode(block().size_update(101), Err(DecodeError::SizeUpdateTooLarge)),
    ]);
}

#[test]
fn reduction_of_the_setting_requires_an_update() {
    let missing = Err(DecodeError::SizeUpdateMissing);
    check([SetMax(100), Decode(block().indexed(2), missing)]);
    check([SetMax(100), Decode(block(), missing)]);
    check([SetMax(100), Decode(block().size_update(100).indexed(2), OK), Decode(block().indexed(2), OK)]);
    check([SetMax(100), Decode(block().size_update(0), OK)]);
    // Undone before the next block: the smallest size must still be signalled, and then the last.
    check([SetMax(100), SetMax(4096), Decode(block().indexed(2), missing)]);
    check([SetMax(100), SetMax(4096), Decode(block().size_update(4096).indexed(2), missing)]);
    check([
        SetMax(100),
        SetMax(200),
        SetMax(4096),
        Decode(block().size_update(200).size_update(4096), missing),
    ]);
    check([SetMax(100), SetMax(4096), Decode(block().size_update(100).size_update(4096).indexed(2), OK)]);
    // The peer already uses at most that size.
    check([Decode(block().size_update(50), OK), SetMax(100), Decode(block().indexed(2), OK)]);
    check([SetMax(8192), SetMax(4096), Decode(block().indexed(2), OK)]);
}

#[test]
fn size_updates_evict() {
    let entry = block().insert("a", "1").insert("b", "2");
    let gone = Err(DecodeError::InvalidIndex);
    check([Decode(entry.clone(), OK), Decode(block().indexed(63), OK), Decode(block().indexed(64), gone)]);
    check([Decode(entry.clone(), OK), Decode(block().size_update(67).indexed(62), OK)]);
    check([Decode(entry.clone(), OK), Decode(block().size_update(67).indexed(63), gone)]);
    check([Decode(entry.clone(), OK), Decode(block().size_update(0).size_update(4096).indexed(62), gone)]);
}

#[test]
fn larger_setting_alone_does_not_enlarge_the_table() {
    // 33 entries of 128 bytes in a table of 4096: the first is evicted unless an update has enlarged the table.
    let inserts = || (0..33).fold(block(), |block, _| block.insert(&"n".repeat(48), &"v".repeat(48)));
    let last_index = 61 + 33;
    check([
        SetMax(8192),
        Decode(inserts(), OK),
        Decode(block().indexed(last_index), Err(DecodeError::InvalidIndex)),
    ]);
    let mut enlarged = block().size_update(8192);
    enlarged.0.extend(inserts().0);
    check([SetMax(8192), Decode(enlarged, OK), Decode(block().indexed(last_index), OK)]);
    let mut decoder = Decoder::new(8192);
    decoder.decode(&inserts().0, usize::MAX, &mut FieldList::new()).unwrap();
    let evicted = decoder.decode(&block().indexed(last_index).0, usize::MAX, &mut FieldList::new());
    assert_eq!(evicted, Err(DecodeError::InvalidIndex));
}

#[test]
fn index_beyond_the_tables_is_an_error() {
    for block in [vec![0x80], vec![0xbe], vec![0xff, 0x00], vec![0x7f, 0x00, 0x00], vec![0x0f, 0x2f, 0x00]] {
        check([Decode(BlockBuilder(block), Err(DecodeError::InvalidIndex))]);
    }
}

#[test]
fn truncated_literal_is_an_error() {
    let complete = block().insert("name", "value").0;
    for end in 1..complete.len() {
        check([Decode(BlockBuilder(complete[..end].to_vec()), Err(DecodeError::Truncated))]);
    }
    check([Decode(BlockBuilder(complete), OK)]);
}

#[test]
fn lengths_and_integers_beyond_bounds_are_errors() {
    // A missing string of 4 GiB less one, an integer beyond 32 bits, and endless padding.
    let string = vec![0x40, 0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f, b'a'];
    check([Decode(BlockBuilder(string), Err(DecodeError::Truncated))]);
    let overflow = Err(DecodeError::IntegerOverflow);
    check([Decode(BlockBuilder(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]), overflow)]);
    check([Decode(BlockBuilder(vec![0x3f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]), overflow)]);
    check([Decode(BlockBuilder(vec![0x40, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff]), overflow)]);
}

#[test]
fn invalid_huffman_string_is_an_error() {
    for string in [&[0xff][..], &[0x00], &[0xff, 0xff, 0xff, 0xff]] {
        let mut block = vec![0x40, 0x80 | string.len() as u8];
        block.extend(string);
        block.push(0);
        check([Decode(BlockBuilder(block), Err(DecodeError::InvalidHuffman))]);
    }
}

#[test]
fn decoded_fields_keep_their_indexing() {
    let mut expected = FieldList::new();
    let mut sent = block();
    for (pattern, indexing) in [(0x40, Indexing::Insert), (0x00, Indexing::Literal), (0x10, Indexing::Never)]
    {
        sent = sent.literal(pattern, "a", "b");
        expected.push(b"a", b"b", indexing);
    }
    let mut received = FieldList::new();
    assert_eq!(Decoder::new(4096).decode(&sent.0, usize::MAX, &mut received), OK);
    assert_eq!(received, expected);
}

#[test]
fn name_of_an_entry_evicted_by_its_own_insertion_is_kept() {
    // RFC 7541 §4.4: the name is copied before its entry is evicted.
    let mut decoder = Decoder::new(100);
    let mut received = FieldList::new();
    let long_name = "n".repeat(60);
    assert_eq!(decoder.decode(&block().insert(&long_name, "1").0, usize::MAX, &mut received), OK);
    assert_eq!(decoder.decode(&[0x7e, 0x01, b'2'], usize::MAX, &mut received), OK);
    assert_eq!(decoder.decode(&block().indexed(62).0, usize::MAX, &mut received), OK);
    assert_eq!(received.get(long_name.as_bytes()), Some(&b"2"[..]));
}

#[test]
fn too_large_list_keeps_the_table_in_sync() {
    let sent = block().insert("a", "1").insert("b", "2").indexed(63).literal(0x10, "c", "3").insert("d", "4");
    // Each field counts 34 bytes, as in `FieldList::size`.
    for (list_size_max, kept) in [(0, 0), (33, 0), (34, 1), (67, 1), (68, 2), (169, 4)] {
        let mut decoder = Decoder::new(4096);
        let mut received = FieldList::new();
        let outcome = decoder.decode(&sent.0, list_size_max, &mut received);
        assert_eq!((outcome, received.len()), (Ok(DecodeOutcome::TooLarge), kept), "{list_size_max}");
        let next = decoder.decode(&block().indexed(62).indexed(63).indexed(64).0, 102, &mut received);
        assert_eq!(next, OK);
        assert_eq!(received.iter().map(|field| field.value).collect::<Vec<_>>(), [b"4", b"2", b"1"]);
    }
    let mut received = FieldList::new();
    assert_eq!(Decoder::new(4096).decode(&sent.0, 170, &mut received), OK);
    assert_eq!(received.len(), 5);
}

#[test]
fn fields_after_one_that_does_not_fit_are_omitted() {
    let mut received = FieldList::new();
    let sent = block().literal(0, "a", &"v".repeat(100)).literal(0, "b", "2").indexed(2);
    assert_eq!(Decoder::new(4096).decode(&sent.0, 100, &mut received), Ok(DecodeOutcome::TooLarge));
    assert!(received.is_empty());
}

#[test]
fn errors_after_a_too_large_list_are_detected() {
    for (bad, error) in [
        (block().indexed(70), DecodeError::InvalidIndex),
        (block().size_update(1), DecodeError::SizeUpdateMisplaced),
        (BlockBuilder(vec![0x00, 0x81, 0xff, 0x00]), DecodeError::InvalidHuffman),
        (BlockBuilder(vec![0x00, 0x05]), DecodeError::Truncated),
    ] {
        let sent = [block().indexed(2).0, bad.0].concat();
        assert_eq!(Decoder::new(4096).decode(&sent, 0, &mut FieldList::new()), Err(error));
    }
}

#[test]
fn version_changes_exactly_when_the_table_does() {
    let mut decoder = Decoder::new(4096);
    let mut last = decoder.version();
    let mut check = |decoder: &Decoder, changed: bool, what: &str| {
        assert_eq!(std::mem::replace(&mut last, decoder.version()) != decoder.version(), changed, "{what}");
    };
    let steps = [
        (block().indexed(2).literal(0, "a", "1").literal(0x10, "a", "1"), false, "nothing enters"),
        (block().insert("a", "1"), true, "an entry comes"),
        (block().indexed(62), false, "an entry is used"),
        (block().size_update(4096), false, "the size is what it was"),
        (block().size_update(100), true, "the size changes"),
        (block().insert(&"n".repeat(60), &"v".repeat(60)), true, "an entry too large empties the table"),
        (block().insert(&"n".repeat(60), &"v".repeat(60)), false, "it is empty already"),
    ];
    for (block, changed, what) in steps {
        assert_eq!(decoder.decode(&block.0, usize::MAX, &mut FieldList::new()), OK, "{what}");
        check(&decoder, changed, what);
    }
    decoder.set_max_table_size(50);
    check(&decoder, true, "the bound changes: a block without an update is an error now");
}
