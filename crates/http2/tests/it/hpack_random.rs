//! Seeded random header lists through encoder and decoder, and random bytes into the decoder.

use std::collections::HashMap;
use std::sync::Arc;

use crate::hpack_support::{Random, assert_received, random_list};
use thalweg_http2::hpack::{DecodeOutcome, Decoder, Encoder};
use thalweg_http2::{Block, FieldList, FixedFields};

/// The blocks of one connection: recurring fixed lists, new lists, and changing settings.
fn check_connection(seed: u64, blocks: usize) {
    let mut random = Random::new(seed);
    let fixed_count = 1 + random.below(150);
    let fixed: Vec<Arc<FixedFields>> =
        (0..fixed_count).map(|_| FixedFields::new(random_list(&mut random))).collect();
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::new(4096);
    // Receives the same blocks with a bounded list size, and must stay in sync.
    let mut bounded = Decoder::new(4096);
    let (mut block, mut received) = (Vec::new(), FieldList::new());
    for number in 0..blocks {
        let what = format!("seed {seed}, block {number}");
        while random.one_in(30) {
            let size = *random.pick(&[&0, &64, &100, &500, &2000, &4096, &65_536]);
            decoder.set_max_table_size(size);
            bounded.set_max_table_size(size);
            encoder.set_max_table_size(size);
        }
        let fixed = (!random.one_in(4)).then(|| &fixed[random.below(fixed_count)]);
        let extra = if random.one_in(3) { random_list(&mut random) } else { FieldList::new() };
        block.clear();
        encoder.encode(Block { fixed, extra: &extra }, &mut block);

        assert_eq!(decoder.decode(&block, usize::MAX, &mut received), Ok(DecodeOutcome::Complete), "{what}");
        assert_received(&received, fixed.map(|fixed| fixed.fields()).into_iter().chain([&extra]), &what);

        let list_size_max = random.below(1000);
        let fits = received.size() <= list_size_max;
        let outcome = bounded.decode(&block, list_size_max, &mut received);
        assert_eq!(outcome == Ok(DecodeOutcome::Complete), fits, "{what}: {outcome:?}");
        assert!(outcome.is_ok() && received.size() <= list_size_max, "{what}: {outcome:?}");
        assert_eq!(bounded.version(), decoder.version(), "{what}");
    }
}

#[test]
fn random_lists_round_trip() {
    for seed in 0..100 {
        check_connection(seed, 300);
    }
}

/// Returns representations with random indices, lengths and contents, most of them valid.
fn random_block(random: &mut Random) -> Vec<u8> {
    let mut block = Vec::new();
    if random.one_in(20) {
        block.extend([0x3f, random.next() as u8, random.next() as u8 & 0x1f]);
    }
    for _ in 0..random.below(8) {
        let pattern = *random.pick(&[&0x80, &0x80, &0x80, &0x40, &0x00, &0x10]);
        let index = if pattern == 0x80 { 1 + random.below(70) as u8 } else { random.below(14) as u8 };
        block.push(pattern | index);
        let strings = usize::from(pattern != 0x80) + usize::from(pattern != 0x80 && index == 0);
        for _ in 0..strings {
            let len = random.below(20);
            block.push(len as u8 | if random.one_in(5) { 0x80 } else { 0 });
            block.extend(random.bytes(len));
        }
    }
    if random.one_in(10) && !block.is_empty() {
        let at = random.below(block.len());
        block[at] ^= 1 << random.below(8);
    }
    block
}

#[test]
fn arbitrary_bytes_stay_within_bounds() {
    const LIST_SIZE_MAX: usize = 250;
    let mut random = Random::new(7541);
    let mut decoder = Decoder::new(4096);
    let mut received = FieldList::new();
    let (mut decoded, mut too_large) = (0, 0);
    for round in 0..100_000 {
        let block = if round % 2 == 0 {
            let len = random.below(60);
            random.bytes(len)
        } else {
            random_block(&mut random)
        };
        // A connection would end on an error; here the decoder continues in whatever state it is.
        match decoder.decode(&block, LIST_SIZE_MAX, &mut received) {
            Ok(DecodeOutcome::Complete) => decoded += 1,
            Ok(DecodeOutcome::TooLarge) => too_large += 1,
            Err(_) => assert!(received.is_empty()),
        }
        assert!(received.size() <= LIST_SIZE_MAX);
        if random.one_in(50) {
            decoder = Decoder::new(4096);
        }
    }
    assert!(decoded > 10_000 && too_large > 100, "the blocks test too little: {decoded}, {too_large}");
}

#[test]
fn equal_blocks_at_equal_versions_decode_equally() {
    let mut random = Random::new(9113);
    let mut repeated = 0;
    for _ in 0..50 {
        let blocks: Vec<_> = (0..20).map(|_| random_block(&mut random)).collect();
        let mut decoder = Decoder::new(4096);
        let mut known = HashMap::new();
        for _ in 0..400 {
            let number = random.below(blocks.len());
            if random.one_in(40) {
                decoder.set_max_table_size(*random.pick(&[&0, &100, &4096]));
            }
            let before = decoder.version();
            let mut received = FieldList::new();
            let outcome = decoder.decode(&blocks[number], 1000, &mut received);
            if let Some(expected) = known.get(&(number, before)) {
                repeated += 1;
                assert_eq!(&(outcome, received.clone(), decoder.version()), expected);
            }
            if decoder.version() == before {
                known.insert((number, before), (outcome, received, before));
            }
        }
    }
    assert!(repeated > 1000, "the blocks test too little: {repeated}");
}
