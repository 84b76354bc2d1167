//! gzip (RFC 1952) and zlib (RFC 1950), which gRPC and HTTP call `deflate`.

use std::cell::RefCell;
use std::io;

use flate2::bufread::{GzDecoder, ZlibDecoder};
use flate2::{Compress, Compression, Crc, FlushCompress, Status as Progress};

use super::inflate::inflate;

thread_local! {
    /// A compressor takes some 300 KiB, kept for the next message of the thread.
    static RAW_DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::default(), false));
    static ZLIB: RefCell<Compress> = RefCell::new(Compress::new(Compression::default(), true));
}

/// A minimal gzip header: deflate, no flags, no time, unknown system (RFC 1952 §2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

pub(super) fn compress_gzip(message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&GZIP_HEADER);
    RAW_DEFLATE.with_borrow_mut(|compress| deflate(compress, message, out));
    let mut crc = Crc::new();
    crc.update(message);
    out.extend_from_slice(&crc.sum().to_le_bytes());
    // The length modulo 2^32.
    out.extend_from_slice(&(message.len() as u32).to_le_bytes());
}

pub(super) fn compress_zlib(message: &[u8], out: &mut Vec<u8>) {
    ZLIB.with_borrow_mut(|compress| deflate(compress, message, out));
}

/// Output space reserved per step of compression, in bytes.
const DEFLATE_STEP: usize = 4 * 1024;

fn deflate(compress: &mut Compress, message: &[u8], out: &mut Vec<u8>) {
    compress.reset();
    loop {
        out.reserve(DEFLATE_STEP.min(message.len() + 64));
        let unread = &message[compress.total_in() as usize..];
        let progress = compress.compress_vec(unread, out, FlushCompress::Finish);
        if progress.expect("a new stream accepts all input") == Progress::StreamEnd {
            return;
        }
    }
}

/// Decompresses up to `size_max + 1` bytes of `message`. Returns them and the rest of the input.
pub(super) fn decompress_gzip(message: &[u8], size_max: usize) -> io::Result<(Vec<u8>, &[u8])> {
    inflate(GzDecoder::new(message), message.len(), size_max, GzDecoder::into_inner)
}

/// Decompresses up to `size_max + 1` bytes of `message`. Returns them and the rest of the input.
pub(super) fn decompress_zlib(message: &[u8], size_max: usize) -> io::Result<(Vec<u8>, &[u8])> {
    // The decoder takes a stream that ends before its first block for an empty one.
    inflate(ZlibDecoder::new(message), message.len(), size_max, |decoder| {
        &message[decoder.total_in() as usize..]
    })
}
