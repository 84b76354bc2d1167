use super::*;

fn fails(bytes: &[u8], read: impl Fn(&mut Reader<'_>) -> Result<(), WireError>) -> (usize, WireErrorKind) {
    let error = read(&mut Reader::new(bytes)).expect_err("bytes that are no Protobuf");
    (error.offset, error.kind)
}

#[test]
fn varints_round_trip() {
    let edges = (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, (1 << bit) + 1]);
    for value in edges.chain([u64::MAX, u64::MAX - 1]) {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        assert_eq!(bytes.len(), varint_len(value), "{value:#x}");
        for behind in [0, 1, 20] {
            let mut input = bytes.clone();
            input.resize(bytes.len() + behind, 0xff);
            let mut reader = Reader::new(&input);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.offset(), bytes.len());
        }
        for len in 0..bytes.len() {
            let truncated = fails(&bytes[..len], |reader| reader.varint().map(drop));
            assert_eq!(truncated, (0, WireErrorKind::Truncated));
        }
    }
}

#[test]
fn varints_beyond_64_bits_are_rejected() {
    let varint = |bytes: &[u8]| fails(bytes, |reader| reader.varint().map(drop));
    let mut bytes = [0xff; 11];
    assert_eq!(varint(&bytes), (0, WireErrorKind::VarintTooLong));
    bytes[9] = 2;
    assert_eq!(varint(&bytes), (0, WireErrorKind::VarintTooLong));
    bytes[9] = 1;
    assert_eq!(Reader::new(&bytes).varint(), Ok(u64::MAX));
}

#[test]
fn overlong_varints_are_accepted() {
    assert_eq!(Reader::new(&[0x81, 0x80, 0x80, 0x00]).varint(), Ok(1));
}

#[test]
fn zigzag_alternates() {
    let values = [0, -1, 1, -2, 2, i64::MAX, i64::MIN];
    let expected = [0, 1, 2, 3, 4, u64::MAX - 1, u64::MAX];
    assert_eq!(values.map(zigzag), expected);
    assert_eq!(expected.map(unzigzag), values);
}

#[test]
fn tags_are_checked() {
    let tag = |bytes: &[u8]| Reader::new(bytes).tag().map_err(|error| error.kind);
    assert_eq!(tag(&[0x08]), Ok(Tag::new(1, WireType::Varint)));
    assert_eq!(tag(&[0x82, 0x01]), Ok(Tag::new(16, WireType::Len)));
    assert_eq!(tag(&[0xfd, 0xff, 0xff, 0xff, 0x0f]), Ok(Tag::new(NUMBER_MAX, WireType::Fixed32)));
    assert_eq!(tag(&[0x88, 0x80, 0x80, 0x80, 0x00]), Ok(Tag::new(1, WireType::Varint)));
    assert_eq!(tag(&[0x88, 0x80, 0x80, 0x80, 0x80, 0x00]), Err(WireErrorKind::TagTooLong));
    assert_eq!(tag(&[0xfd, 0xff, 0xff, 0xff, 0x1f]), Err(WireErrorKind::TagTooLong));
    assert_eq!(tag(&[0x02]), Err(WireErrorKind::FieldNumber));
    assert_eq!(tag(&[0x0e]), Err(WireErrorKind::WireType));
    assert_eq!(tag(&[0x0f]), Err(WireErrorKind::WireType));
    assert_eq!(tag(&[]), Err(WireErrorKind::Truncated));
    assert_eq!(tag(&[0x80]), Err(WireErrorKind::Truncated));
}

#[test]
fn lengths_are_bounded_by_the_enclosing_message() {
    let mut outer = Reader::new(&[3, 2, b'a', b'b', b'c']);
    let mut inner = outer.nested().expect("three bytes");
    assert_eq!((inner.offset(), inner.end(), outer.offset()), (1, 4, 4));
    assert_eq!(inner.len_prefixed(), Ok(&b"ab"[..]));
    assert!(inner.is_empty());
    let mut inner = Reader::within(&[3, 4, b'a', b'b', b'c', b'd'], 1, 4).expect("a range");
    assert_eq!(inner.len_prefixed(), Err(WireError { offset: 1, kind: WireErrorKind::Length }));
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert_eq!(fails(&huge, |reader| reader.nested().map(drop)), (0, WireErrorKind::Length));
}

#[test]
fn groups_are_skipped_with_their_content() {
    let skip = |bytes: &[u8], depth| {
        let mut reader = Reader::new(bytes);
        let tag = reader.tag()?;
        reader.skip(tag, depth)?;
        Ok::<_, WireError>(reader.offset())
    };
    // Group 1 { 2: 5, group 3 { } } followed by one byte.
    assert_eq!(skip(&[0x0b, 0x10, 0x05, 0x1b, 0x1c, 0x0c, 0x00], 2), Ok(6));
    let fails = |bytes: &[u8], depth| skip(bytes, depth).map_err(|error| (error.offset, error.kind));
    assert_eq!(fails(&[0x0b, 0x1b, 0x1c, 0x0c], 1), Err((2, WireErrorKind::TooDeep)));
    assert_eq!(fails(&[0x0b, 0x14], 2), Err((1, WireErrorKind::EndGroup)));
    assert_eq!(fails(&[0x0b, 0x10, 0x05], 2), Err((1, WireErrorKind::GroupOpen)));
    assert_eq!(fails(&[0x0c], 2), Err((1, WireErrorKind::EndGroup)));
}
