//! Sizes of messages, raw and compressed.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::contract::Size;

const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Returns the mean sizes of messages, each compressed separately.
pub(crate) fn size(data: &str, codec: &str, wires: &[Vec<u8>]) -> Size {
    let mean = |bytes: &dyn Fn(&[u8]) -> usize| {
        wires.iter().map(|wire| bytes(wire) as f64).sum::<f64>() / wires.len().max(1) as f64
    };
    Size {
        data: data.to_owned(),
        codec: codec.to_owned(),
        raw: mean(&<[u8]>::len),
        gzip: mean(&gzip),
        zstd: mean(&zstd),
    }
}

fn gzip(wire: &[u8]) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(wire).and_then(|()| encoder.finish()).expect("writing to a Vec does not fail").len()
}

fn zstd(wire: &[u8]) -> usize {
    zstd::bulk::compress(wire, ZSTD_LEVEL).expect("compressing into a Vec does not fail").len()
}
