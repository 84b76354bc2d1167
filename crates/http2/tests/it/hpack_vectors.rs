//! The examples of RFC 7541 Appendix C.

use thalweg_http2::hpack::{DecodeOutcome, Decoder, Encoder};
use thalweg_http2::{Block, FieldList, Indexing};

/// A block in a sequence on one connection.
struct Example {
    block: &'static str,
    fields: &'static [(&'static str, &'static str)],
    /// Newest first.
    table: &'static [(&'static str, &'static str)],
}

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<_> =
        hex.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn pairs(list: &FieldList) -> Vec<(&str, &str)> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    list.iter().map(|field| (text(field.name), text(field.value))).collect()
}

/// Checks the content of the dynamic table with indexed fields, which do not change it.
fn check_table(decoder: &mut Decoder, expected: &[(&str, &str)]) {
    let mut received = FieldList::new();
    for (index, pair) in (62u8..).zip(expected) {
        decoder.decode(&[0x80 | index], usize::MAX, &mut received).unwrap();
        assert_eq!(pairs(&received), [*pair], "index {index}");
    }
    assert!(decoder.decode(&[0x80 | (62 + expected.len() as u8)], usize::MAX, &mut received).is_err());
}

fn check(table_size: usize, examples: &[Example]) {
    let mut decoder = Decoder::new(table_size);
    let mut received = FieldList::new();
    for example in examples {
        let outcome = decoder.decode(&octets(example.block), usize::MAX, &mut received);
        assert_eq!(outcome, Ok(DecodeOutcome::Complete), "{}", example.block);
        assert_eq!(pairs(&received), example.fields, "{}", example.block);
        check_table(&mut decoder, example.table);
    }
}

/// Checks that encoding the fields of the examples gives their blocks.
fn check_encoder(examples: &[Example]) {
    let mut encoder = Encoder::new();
    for example in examples {
        let mut fields = FieldList::new();
        for (name, value) in example.fields {
            fields.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
        }
        let mut block = Vec::new();
        encoder.encode(Block { fixed: None, extra: &fields }, &mut block);
        assert_eq!(block, octets(example.block), "{}", example.block);
    }
}

fn check_representation(block: &str, field: (&str, &str), indexing: Indexing, table: &[(&str, &str)]) {
    let mut decoder = Decoder::new(4096);
    let mut received = FieldList::new();
    decoder.decode(&octets(block), usize::MAX, &mut received).unwrap();
    let mut expected = FieldList::new();
    expected.push(field.0.as_bytes(), field.1.as_bytes(), indexing);
    assert_eq!(received, expected);
    check_table(&mut decoder, table);
}

#[test]
fn c_2_representations() {
    let custom = ("custom-key", "custom-header");
    check_representation(
        "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        custom,
        Indexing::Insert,
        &[custom],
    );
    check_representation(
        "040c 2f73 616d 706c 652f 7061 7468",
        (":path", "/sample/path"),
        Indexing::Literal,
        &[],
    );
    check_representation(
        "1008 7061 7373 776f 7264 0673 6563 7265 74",
        ("password", "secret"),
        Indexing::Never,
        &[],
    );
    check_representation("82", (":method", "GET"), Indexing::Insert, &[]);
}

const AUTHORITY: (&str, &str) = (":authority", "www.example.com");
const NO_CACHE: (&str, &str) = ("cache-control", "no-cache");
const CUSTOM: (&str, &str) = ("custom-key", "custom-value");
const GET: (&str, &str) = (":method", "GET");

/// The requests of §C.3 and §C.4, which differ only in their blocks.
const fn requests(blocks: [&'static str; 3]) -> [Example; 3] {
    let [first, second, third] = blocks;
    [
        Example {
            block: first,
            fields: &[GET, (":scheme", "http"), (":path", "/"), AUTHORITY],
            table: &[AUTHORITY],
        },
        Example {
            block: second,
            fields: &[GET, (":scheme", "http"), (":path", "/"), AUTHORITY, NO_CACHE],
            table: &[NO_CACHE, AUTHORITY],
        },
        Example {
            block: third,
            fields: &[GET, (":scheme", "https"), (":path", "/index.html"), AUTHORITY, CUSTOM],
            table: &[CUSTOM, NO_CACHE, AUTHORITY],
        },
    ]
}

#[test]
fn c_3_requests_without_huffman_coding() {
    check(
        4096,
        &requests([
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ]),
    );
}

#[test]
fn c_4_requests_with_huffman_coding() {
    let examples = requests([
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ]);
    check(4096, &examples);
    check_encoder(&examples);
}

const PRIVATE: (&str, &str) = ("cache-control", "private");
const DATE_21: (&str, &str) = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
const DATE_22: (&str, &str) = ("date", "Mon, 21 Oct 2013 20:13:22 GMT");
const LOCATION: (&str, &str) = ("location", "https://www.example.com");
const GZIP: (&str, &str) = ("content-encoding", "gzip");
const COOKIE: (&str, &str) = ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");

/// The responses of §C.5 and §C.6: a table of 256 bytes, so that entries are evicted.
const fn responses(blocks: [&'static str; 3]) -> [Example; 3] {
    let [first, second, third] = blocks;
    [
        Example {
            block: first,
            fields: &[(":status", "302"), PRIVATE, DATE_21, LOCATION],
            table: &[LOCATION, DATE_21, PRIVATE, (":status", "302")],
        },
        Example {
            block: second,
            fields: &[(":status", "307"), PRIVATE, DATE_21, LOCATION],
            table: &[(":status", "307"), LOCATION, DATE_21, PRIVATE],
        },
        Example {
            block: third,
            fields: &[(":status", "200"), PRIVATE, DATE_22, LOCATION, GZIP, COOKIE],
            table: &[COOKIE, GZIP, DATE_22],
        },
    ]
}

#[test]
fn c_5_responses_without_huffman_coding() {
    check(
        256,
        &responses([
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32
             3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970
             7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61
             6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        ]),
    );
}

#[test]
fn c_6_responses_with_huffman_coding() {
    check(
        256,
        &responses([
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad
             1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2
             e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ]),
    );
}
