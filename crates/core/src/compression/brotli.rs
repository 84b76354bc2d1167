//! Brotli (RFC 7932), `br` in HTTP.

use std::io::{self, Write};

use brotli::enc::{BrotliEncoderParams, StandardAlloc};
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, CompressorWriter};

/// Takes little longer than the defaults of zlib and Zstandard. Quality 9 and above take ten times as long.
const QUALITY: i32 = 4;
/// Bytes processed per step.
const STEP: usize = 4 * 1024;

pub(super) fn compress(message: &[u8], out: &mut Vec<u8>) {
    let params = BrotliEncoderParams { quality: QUALITY, size_hint: message.len(), ..Default::default() };
    let mut writer = CompressorWriter::with_params(out, STEP, &params);
    writer.write_all(message).expect("writing to a Vec does not fail");
    // Writes the end of the stream.
    writer.into_inner();
}

/// Returns a compressor for bodies that arrive in pieces.
pub(super) fn writer() -> CompressorWriter<Vec<u8>> {
    let params = BrotliEncoderParams { quality: QUALITY, ..Default::default() };
    CompressorWriter::with_params(Vec::new(), STEP, &params)
}

/// Decompresses up to `size_max + 1` bytes of `message`. Returns them and the rest of the input.
pub(super) fn decompress(message: &[u8], size_max: usize) -> io::Result<(Vec<u8>, &[u8])> {
    let (mut decoder, mut rest, mut inflated) = (Decoder::default(), message, Vec::new());
    while inflated.len() <= size_max {
        let start = inflated.len();
        inflated.resize(start + STEP.min(size_max.saturating_add(1) - start), 0);
        let (read, written) = decoder.step(rest, &mut inflated[start..])?;
        inflated.truncate(start + written);
        rest = &rest[read..];
        if decoder.has_ended {
            break;
        }
        if written == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok((inflated, rest))
}

/// Decompressor for bodies that arrive in pieces. Its window takes up to 16 MiB, which the format allows any sender.
pub(super) struct Decoder {
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    written: usize,
    pub(super) has_ended: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        let alloc = StandardAlloc::default;
        // Excludes the non-standard windows of more than 16 MiB.
        let state = BrotliState::new_strict(alloc(), alloc(), alloc());
        Self { state: Box::new(state), written: 0, has_ended: false }
    }
}

impl Decoder {
    /// Decompresses one step. Returns the number of bytes read from `input` and written to `out`.
    pub(super) fn step(&mut self, input: &[u8], out: &mut [u8]) -> io::Result<(usize, usize)> {
        let (mut input_left, mut read) = (input.len(), 0);
        let (mut space, mut written) = (out.len(), 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut read,
            input,
            &mut space,
            &mut written,
            out,
            &mut self.written,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => Err(io::Error::other("invalid Brotli data")),
            BrotliResult::ResultSuccess => {
                self.has_ended = true;
                Ok((read, written))
            }
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok((read, written)),
        }
    }
}
