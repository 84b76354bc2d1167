//! The encoder's choices: representations, size updates, and the cache of fixed fields.

use std::sync::Arc;

use crate::hpack_support::assert_received;
use thalweg_http2::hpack::{DecodeOutcome, Decoder, Encoder};
use thalweg_http2::{Block, FieldList, FixedFields, Indexing};

/// An encoder and the decoder of its peer.
struct Link {
    encoder: Encoder,
    decoder: Decoder,
}

impl Link {
    fn new() -> Self {
        Self { encoder: Encoder::new(), decoder: Decoder::new(4096) }
    }

    fn set_max_table_size(&mut self, size: usize) {
        self.decoder.set_max_table_size(size);
        self.encoder.set_max_table_size(size);
    }

    /// Encodes a block, checks that it decodes to the fields sent, and returns its bytes.
    fn send(&mut self, fixed: Option<&Arc<FixedFields>>, extra: &FieldList) -> Vec<u8> {
        let mut bytes = b"frame header".to_vec();
        self.encoder.encode(Block { fixed, extra }, &mut bytes);
        let bytes = bytes.strip_prefix(b"frame header").expect("it appends").to_vec();
        let mut received = FieldList::new();
        let outcome = self.decoder.decode(&bytes, usize::MAX, &mut received);
        assert_eq!(outcome, Ok(DecodeOutcome::Complete), "{bytes:02x?}");
        assert_received(&received, fixed.map(|fixed| fixed.fields()).into_iter().chain([extra]), "sent");
        bytes
    }

    fn send_fixed(&mut self, fixed: &Arc<FixedFields>) -> Vec<u8> {
        self.send(Some(fixed), &FieldList::new())
    }
}

fn list(fields: &[(&str, &str, Indexing)]) -> FieldList {
    let mut list = FieldList::new();
    for (name, value, indexing) in fields {
        list.push(name.as_bytes(), value.as_bytes(), *indexing);
    }
    list
}

/// Headers of a request to one of many methods: eight fields that differ in the path only.
fn method_headers(method: usize) -> Arc<FixedFields> {
    FixedFields::new(list(&[
        (":method", "POST", Indexing::Insert),
        (":scheme", "http", Indexing::Insert),
        (":path", &format!("/warehouse.v1.InventoryService/Method{method}"), Indexing::Insert),
        (":authority", "inventory.example.com:50051", Indexing::Insert),
        ("content-type", "application/grpc", Indexing::Insert),
        ("te", "trailers", Indexing::Insert),
        ("user-agent", "grpc-rust-thalweg/0.1.0", Indexing::Insert),
        ("grpc-accept-encoding", "identity,gzip", Indexing::Insert),
    ]))
}

#[track_caller]
fn check_block(fields: &[(&str, &str, Indexing)], expected: &[u8]) {
    assert_eq!(Link::new().send(None, &list(fields)), expected);
}

#[test]
fn static_fields_are_one_octet() {
    check_block(&[(":method", "POST", Indexing::Insert)], &[0x83]);
    check_block(&[(":status", "200", Indexing::Literal)], &[0x88]);
}

#[test]
fn sensitive_fields_are_never_indexed() {
    check_block(&[(":method", "POST", Indexing::Never)], b"\x12\x04POST");
    check_block(&[("key", "\x01", Indexing::Never)], b"\x10\x03key\x01\x01");
}

#[test]
fn strings_are_huffman_coded_only_if_shorter() {
    // "99m": 6 + 6 + 6 bits take three octets, as many as uncoded.
    check_block(&[(":path", "99m", Indexing::Literal)], b"\x04\x0399m");
    // "000000": six times 5 bits take four octets.
    check_block(&[(":path", "000000", Indexing::Literal)], b"\x04\x84\x00\x00\x00\x03");
    check_block(&[(":path", "", Indexing::Literal)], b"\x04\x00");
}

#[test]
fn literal_field_takes_its_name_from_the_table() {
    let mut link = Link::new();
    link.send(None, &list(&[("grpc-timeout", "1S", Indexing::Insert)]));
    assert_eq!(link.send(None, &list(&[("grpc-timeout", "9X", Indexing::Literal)])), b"\x0f\x2f\x029X");
    assert_eq!(link.send(None, &list(&[("grpc-timeout", "9X", Indexing::Never)])), b"\x1f\x2f\x029X");
}

#[test]
fn fixed_fields_become_one_octet_each() {
    let mut link = Link::new();
    let headers = method_headers(0);
    let first = link.send_fixed(&headers);
    assert!(first.len() > 100);
    let version = link.decoder.version();
    for _ in 0..3 {
        // Six entries of the dynamic table, inserted in order: index 62 is the last.
        assert_eq!(link.send_fixed(&headers), [0x83, 0x86, 0xc3, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
    }
    assert_eq!(link.decoder.version(), version, "nothing entered the table");
}

#[test]
fn cached_block_is_updated_after_other_insertions() {
    let mut link = Link::new();
    let headers = method_headers(0);
    for round in 0..20 {
        link.send_fixed(&headers);
        link.send_fixed(&headers);
        link.send(Some(&headers), &list(&[("x-round", &round.to_string(), Indexing::Insert)]));
    }
    assert_eq!(link.send_fixed(&headers), [0x83, 0x86, 0xd7, 0xd6, 0xd5, 0xd4, 0xd3, 0xd2]);
}

#[test]
fn cached_block_is_updated_after_size_changes() {
    let mut link = Link::new();
    let headers = method_headers(0);
    for size in [4096, 0, 100, 4096, 64, 200, 1000, 0, 4096] {
        link.set_max_table_size(size);
        for _ in 0..3 {
            link.send_fixed(&headers);
        }
    }
    assert_eq!(link.send_fixed(&headers).len(), 8);
}

#[test]
fn smallest_and_last_size_are_announced() {
    let cases: [(&[usize], &[u8]); 9] = [
        (&[], &[]),
        (&[4096], &[]),
        (&[65_536], &[]),
        (&[0], &[0x20]),
        (&[100], &[0x3f, 0x45]),
        (&[100, 200], &[0x3f, 0x45, 0x3f, 0xa9, 0x01]),
        (&[100, 50, 4096], &[0x3f, 0x13, 0x3f, 0xe1, 0x1f]),
        (&[8192, 100], &[0x3f, 0x45]),
        (&[200, 100, 100], &[0x3f, 0x45]),
    ];
    for (sizes, updates) in cases {
        let mut link = Link::new();
        for &size in sizes {
            link.set_max_table_size(size);
        }
        let fields = list(&[(":method", "POST", Indexing::Insert)]);
        assert_eq!(link.send(None, &fields), [updates, &[0x83]].concat(), "{sizes:?}");
        assert_eq!(link.send(None, &fields), [0x83], "{sizes:?}: announced once");
    }
}

#[test]
fn raised_size_is_announced() {
    let mut link = Link::new();
    link.set_max_table_size(0);
    link.send(None, &FieldList::new());
    link.set_max_table_size(100);
    assert_eq!(link.send(None, &FieldList::new()), [0x3f, 0x45]);
}

#[test]
fn field_larger_than_half_the_table_is_not_inserted() {
    let mut link = Link::new();
    let headers = method_headers(0);
    link.send_fixed(&headers);
    let version = link.decoder.version();
    link.send(None, &list(&[("x-large", &"v".repeat(2048), Indexing::Insert)]));
    assert_eq!(link.decoder.version(), version);
}

#[test]
fn hundreds_of_methods_do_not_evict_shared_fields() {
    let mut link = Link::new();
    let requests: Vec<_> = (0..300).map(method_headers).collect();
    // The table fills up; later paths are literals.
    for headers in &requests {
        link.send_fixed(headers);
    }
    let version = link.decoder.version();
    let mut octets = 0;
    for _ in 0..20 {
        octets += requests.iter().map(|headers| link.send_fixed(headers).len()).sum::<usize>();
    }
    // Each insertion and each eviction is a change. Without admission, first in, first out would cause about 7
    // evictions and as many insertions per call, or 80,000.
    assert!(link.decoder.version() - version < 100, "{}", link.decoder.version() - version);
    // Seven octets for the shared fields, and a path of 30 to 35.
    assert!(octets / 6000 < 45, "{}", octets / 6000);
}

#[test]
fn one_off_values_do_not_invalidate_the_cache() {
    let mut link = Link::new();
    let headers = method_headers(0);
    link.send_fixed(&headers);
    let id = |call: usize| list(&[("x-request-id", &format!("{call:032x}"), Indexing::Insert)]);
    for call in 0..100 {
        link.send(Some(&headers), &id(call));
    }
    let version = link.decoder.version();
    for call in 100..2100 {
        link.send(Some(&headers), &id(call));
    }
    assert!(link.decoder.version() - version < 50, "{}", link.decoder.version() - version);
    assert_eq!(link.send_fixed(&headers).len(), 8);
}

#[test]
fn full_table_admits_recurring_fields() {
    let mut link = Link::new();
    for method in 0..300 {
        link.send_fixed(&method_headers(method));
    }
    let late = method_headers(300);
    let lens: Vec<_> = (0..40).map(|_| link.send_fixed(&late).len()).collect();
    assert!(lens[0] > 30, "{lens:?}");
    assert_eq!(lens[39], 8, "{lens:?}");
}

#[test]
fn lists_in_the_same_cache_set_are_not_confused() {
    let mut link = Link::new();
    let requests: Vec<_> = (0..40).map(method_headers).collect();
    let mut first_round = Vec::new();
    for round in 0..4 {
        for (at, headers) in requests.iter().enumerate() {
            let bytes = link.send_fixed(headers);
            match round {
                0 | 1 => {}
                2 => first_round.push(bytes),
                _ => assert_eq!(bytes, first_round[at]),
            }
        }
    }
}
