//! Any bytes as HPACK blocks. Decoded fields survive another encoder and decoder.

use thalweg_http2::hpack::{DEFAULT_TABLE_SIZE, DecodeOutcome, Decoder, Encoder};
use thalweg_http2::{Block, FieldList, Indexing};

use super::features::{Features, feature};
use crate::http2::random_fields;
use crate::random::Random;

/// Maximum size of accepted header lists, in bytes.
const LIST_SIZE_MAX: usize = 4000;
/// Blocks in one input of the corpus.
const BLOCKS: usize = 8;

/// An input is a sequence of blocks, each after one byte for the table size and two for its length.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    (0..30).map(recorded).collect()
}

fn recorded(seed: u64) -> Vec<u8> {
    let (mut random, mut encoder) = (Random::new(seed), Encoder::new());
    let mut input = Vec::new();
    for _ in 0..BLOCKS {
        let (mut fields, mut block) = (FieldList::new(), Vec::new());
        random_fields(&mut random, &mut fields);
        encoder.encode(Block { fixed: None, extra: &fields }, &mut block);
        input.push(KEEP_SIZE);
        input.extend_from_slice(&(block.len() as u16).to_be_bytes());
        input.extend_from_slice(&block);
    }
    input
}

/// A block's first byte that keeps the table size; lower values set it, in steps of 64 bytes.
const KEEP_SIZE: u8 = 128;

pub(super) fn target(mut data: &[u8]) -> Features {
    let mut decoder = Decoder::new(DEFAULT_TABLE_SIZE);
    let (mut encoder, mut second) = (Encoder::new(), Decoder::new(DEFAULT_TABLE_SIZE));
    let mut features = Features::new();
    while let Some((&[size, high, low], rest)) = data.split_first_chunk() {
        if size < KEEP_SIZE {
            decoder.set_max_table_size(usize::from(size) * 64);
            encoder.set_max_table_size(usize::from(size) * 64);
            second.set_max_table_size(usize::from(size) * 64);
        }
        let (block, behind) = rest.split_at(usize::from(u16::from_be_bytes([high, low])).min(rest.len()));
        data = behind;
        let mut fields = FieldList::new();
        let outcome = decoder.decode(block, LIST_SIZE_MAX, &mut fields);
        features.insert(feature((format!("{outcome:?}"), fields.len().min(8), size < KEEP_SIZE)));
        match outcome {
            Ok(DecodeOutcome::Complete) => {
                assert!(fields.size() <= LIST_SIZE_MAX, "a list of {} bytes", fields.size());
                assert_survives(&fields, &mut encoder, &mut second);
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    features
}

fn assert_survives(fields: &FieldList, encoder: &mut Encoder, decoder: &mut Decoder) {
    let mut block = Vec::new();
    encoder.encode(Block { fixed: None, extra: fields }, &mut block);
    let mut again = FieldList::new();
    let outcome = decoder.decode(&block, LIST_SIZE_MAX, &mut again);
    assert_eq!(outcome, Ok(DecodeOutcome::Complete), "{block:02x?}");
    let plain = |list: &FieldList| {
        let plain = list
            .iter()
            .map(|field| (field.name.to_vec(), field.value.to_vec(), field.indexing == Indexing::Never));
        plain.collect::<Vec<_>>()
    };
    assert_eq!(plain(&again), plain(fields), "{block:02x?}");
}
