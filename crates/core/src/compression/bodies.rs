//! Streaming compression of bodies with any number of messages: HTTP's content codings.

use std::io::{self, Write};
#[cfg(feature = "compression-zstd")]
use std::io::{BufRead, Read};

use bytes::{Buf, Bytes};
use flate2::write::{GzDecoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, Decompress, FlushDecompress, Status as Progress};

#[cfg(feature = "compression-brotli")]
use super::brotli as br;
#[cfg(feature = "compression-zstd")]
use super::encoding::window_log_max;
use super::encoding::{DecompressError, Encoding};

/// Compresses a body piece by piece. The receiver can decode each piece as soon as it has arrived.
pub struct BodyEncoder(Encoder);

enum Encoder {
    Identity,
    Gzip(GzEncoder<Vec<u8>>),
    Deflate(ZlibEncoder<Vec<u8>>),
    #[cfg(feature = "compression-zstd")]
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    #[cfg(feature = "compression-brotli")]
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
}

impl BodyEncoder {
    /// Creates an encoder.
    pub fn new(encoding: Encoding) -> Self {
        let level = Compression::default();
        Self(match encoding {
            Encoding::Identity => Encoder::Identity,
            Encoding::Gzip => Encoder::Gzip(GzEncoder::new(Vec::new(), level)),
            Encoding::Deflate => Encoder::Deflate(ZlibEncoder::new(Vec::new(), level)),
            #[cfg(feature = "compression-zstd")]
            Encoding::Zstd => {
                let level = zstd::DEFAULT_COMPRESSION_LEVEL;
                let encoder = zstd::stream::write::Encoder::new(Vec::new(), level);
                Encoder::Zstd(encoder.expect("enough memory for a compressor"))
            }
            #[cfg(feature = "compression-brotli")]
            Encoding::Brotli => Encoder::Brotli(Box::new(br::writer())),
        })
    }

    /// Returns the bytes to send for the next piece.
    pub fn push(&mut self, piece: Vec<u8>) -> Vec<u8> {
        fn flushed<W: Write>(writer: &mut W, piece: &[u8]) {
            writer.write_all(piece).and_then(|()| writer.flush()).expect("writing to a Vec does not fail");
        }
        match &mut self.0 {
            Encoder::Identity => piece,
            Encoder::Gzip(writer) => {
                flushed(writer, &piece);
                std::mem::take(writer.get_mut())
            }
            Encoder::Deflate(writer) => {
                flushed(writer, &piece);
                std::mem::take(writer.get_mut())
            }
            #[cfg(feature = "compression-zstd")]
            Encoder::Zstd(writer) => {
                flushed(writer, &piece);
                std::mem::take(writer.get_mut())
            }
            #[cfg(feature = "compression-brotli")]
            Encoder::Brotli(writer) => {
                flushed(writer, &piece);
                std::mem::take(writer.get_mut())
            }
        }
    }

    /// Returns the bytes to send after the last piece.
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            Encoder::Identity => Vec::new(),
            Encoder::Gzip(writer) => writer.finish().expect("writing to a Vec does not fail"),
            Encoder::Deflate(writer) => writer.finish().expect("writing to a Vec does not fail"),
            #[cfg(feature = "compression-zstd")]
            Encoder::Zstd(writer) => writer.finish().expect("writing to a Vec does not fail"),
            #[cfg(feature = "compression-brotli")]
            Encoder::Brotli(writer) => writer.into_inner(),
        }
    }
}

/// Decompresses a body piece by piece: push a piece, and take output until there is none.
pub struct BodyDecoder {
    decoder: Decoder,
    has_input: bool,
    has_ended: bool,
}

enum Decoder {
    Identity(Bytes),
    /// The writer holds the decompressed bytes that have not been taken.
    Gzip(Box<GzDecoder<Vec<u8>>>, Bytes),
    Deflate(Decompress, Bytes),
    #[cfg(feature = "compression-zstd")]
    Zstd(zstd::stream::read::Decoder<'static, Feed>),
    #[cfg(feature = "compression-brotli")]
    Brotli(br::Decoder, Bytes),
}

/// Maximum bytes of gzip input per step, which become at most 1 MiB.
const GZIP_STEP: usize = 1024;

/// Input of a decoder. If it is empty, more may arrive.
#[cfg(feature = "compression-zstd")]
struct Feed(Bytes);

#[cfg(feature = "compression-zstd")]
impl Read for Feed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.len().min(out.len());
        self.0.split_to(len).copy_to_slice(&mut out[..len]);
        Ok(len)
    }
}

#[cfg(feature = "compression-zstd")]
impl BufRead for Feed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.0.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(&self.0) }
    }

    fn consume(&mut self, len: usize) {
        self.0.advance(len);
    }
}

impl BodyDecoder {
    /// Creates a decoder.
    pub fn new(encoding: Encoding) -> Self {
        let decoder = match encoding {
            Encoding::Identity => Decoder::Identity(Bytes::new()),
            Encoding::Gzip => Decoder::Gzip(Box::new(GzDecoder::new(Vec::new())), Bytes::new()),
            Encoding::Deflate => Decoder::Deflate(Decompress::new(true), Bytes::new()),
            #[cfg(feature = "compression-zstd")]
            Encoding::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(Feed(Bytes::new()));
                let mut decoder = decoder.expect("enough memory for a decompressor").single_frame();
                decoder.window_log_max(window_log_max(0)).expect("a window size that every decoder supports");
                Decoder::Zstd(decoder)
            }
            #[cfg(feature = "compression-brotli")]
            Encoding::Brotli => Decoder::Brotli(br::Decoder::default(), Bytes::new()),
        };
        Self { decoder, has_input: false, has_ended: false }
    }

    /// Adds received bytes. All output of the previous piece must have been taken.
    pub fn push(&mut self, piece: Bytes) {
        self.has_input |= !piece.is_empty();
        match &mut self.decoder {
            Decoder::Identity(input) | Decoder::Gzip(_, input) | Decoder::Deflate(_, input) => *input = piece,
            #[cfg(feature = "compression-zstd")]
            Decoder::Zstd(decoder) => decoder.get_mut().0 = piece,
            #[cfg(feature = "compression-brotli")]
            Decoder::Brotli(_, input) => *input = piece,
        }
    }

    /// Returns the next bytes of the body, at most `len_max`, which must not be 0. Returns `None` if more has to
    /// arrive.
    ///
    /// # Errors
    /// The body is not valid for its encoding.
    pub fn take(&mut self, len_max: usize) -> Result<Option<Bytes>, DecompressError> {
        if let Decoder::Identity(input) = &mut self.decoder {
            let piece = input.split_to(len_max.min(input.len()));
            return Ok((!piece.is_empty()).then_some(piece));
        }
        let mut out = vec![0; if self.has_ended { 1 } else { len_max }];
        match self.read(&mut out) {
            Ok(0) if self.has_ended => Ok(None),
            Ok(len) => {
                out.truncate(len);
                Ok(Some(out.into()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(DecompressError::Corrupt(error)),
        }
    }

    /// Ends the body, whose output must have been taken.
    ///
    /// # Errors
    /// The encoded body is incomplete.
    pub fn finish(&mut self) -> Result<(), DecompressError> {
        let is_whole = match &mut self.decoder {
            _ if !self.has_input || self.has_ended => true,
            Decoder::Identity(_) => true,
            Decoder::Gzip(decoder, _) => return decoder.try_finish().map_err(DecompressError::Corrupt),
            Decoder::Deflate(..) => false,
            #[cfg(feature = "compression-zstd")]
            Decoder::Zstd(_) => false,
            #[cfg(feature = "compression-brotli")]
            Decoder::Brotli(..) => false,
        };
        if is_whole { Ok(()) } else { Err(DecompressError::Corrupt(io::ErrorKind::UnexpectedEof.into())) }
    }

    /// Returns the number of bytes, and 0 at the end. WouldBlock means that more has to arrive.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.has_ended {
            return if self.input_len() == 0 { Ok(0) } else { Err(io::Error::other("trailing bytes")) };
        }
        let (len, has_ended) = match &mut self.decoder {
            Decoder::Identity(_) => (0, true),
            Decoder::Gzip(decoder, input) => {
                if decoder.get_ref().is_empty() && !input.is_empty() {
                    match decoder.write(&input[..GZIP_STEP.min(input.len())])? {
                        0 => return Err(io::Error::other("trailing bytes")),
                        read => input.advance(read),
                    }
                    decoder.flush()?;
                }
                let (written, is_last) = (decoder.get_mut(), input.is_empty());
                let len = written.len().min(out.len());
                out[..len].copy_from_slice(&written[..len]);
                written.drain(..len);
                if len == 0 && !is_last {
                    return self.read(out);
                }
                (len, false)
            }
            Decoder::Deflate(decoder, input) => {
                let (read_before, written_before) = (decoder.total_in(), decoder.total_out());
                let progress = decoder.decompress(input, out, FlushDecompress::None)?;
                input.advance((decoder.total_in() - read_before) as usize);
                ((decoder.total_out() - written_before) as usize, progress == Progress::StreamEnd)
            }
            #[cfg(feature = "compression-zstd")]
            Decoder::Zstd(decoder) => {
                let len = decoder.read(out)?;
                (len, len == 0)
            }
            #[cfg(feature = "compression-brotli")]
            Decoder::Brotli(decoder, input) => {
                let (read, written) = decoder.step(input, out)?;
                input.advance(read);
                (written, decoder.has_ended)
            }
        };
        self.has_ended = has_ended;
        match len {
            0 if has_ended => self.read(out),
            0 => Err(io::ErrorKind::WouldBlock.into()),
            len => Ok(len),
        }
    }

    fn input_len(&self) -> usize {
        match &self.decoder {
            Decoder::Identity(input) | Decoder::Gzip(_, input) | Decoder::Deflate(_, input) => input.len(),
            #[cfg(feature = "compression-zstd")]
            Decoder::Zstd(decoder) => decoder.get_ref().0.len(),
            #[cfg(feature = "compression-brotli")]
            Decoder::Brotli(_, input) => input.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Seeded;

    /// Decodes a body that arrives in pieces of `piece_len` bytes.
    fn decode(encoding: Encoding, body: &[u8], piece_len: usize, len_max: usize) -> Result<Vec<u8>, String> {
        let (mut decoder, mut out) = (BodyDecoder::new(encoding), Vec::new());
        for piece in body.chunks(piece_len) {
            decoder.push(Bytes::copy_from_slice(piece));
            while let Some(piece) = decoder.take(len_max).map_err(|error| error.to_string())? {
                assert!(!piece.is_empty() && piece.len() <= len_max);
                out.extend_from_slice(&piece);
            }
        }
        decoder.finish().map_err(|error| error.to_string())?;
        Ok(out)
    }

    #[test]
    fn bodies_round_trip_in_any_pieces() {
        let mut seeded = Seeded(5);
        for encoding in Encoding::ALL {
            for _ in 0..20 {
                let (mut encoder, mut whole, mut body) =
                    (BodyEncoder::new(*encoding), Vec::new(), Vec::new());
                for _ in 0..seeded.bytes(1..5)[0] % 5 {
                    let piece = [seeded.bytes(0..3000), vec![b'a'; 2000]].concat();
                    whole.extend_from_slice(&piece);
                    body.extend(encoder.push(piece));
                    // All pieces pushed so far can be decoded before the end.
                    let mut decoder = BodyDecoder::new(*encoding);
                    decoder.push(body.clone().into());
                    let mut read = Vec::new();
                    while let Some(piece) = decoder.take(1000).unwrap() {
                        read.extend_from_slice(&piece);
                    }
                    assert!(read == whole, "{encoding:?}: {} of {}", read.len(), whole.len());
                    assert_eq!(decoder.finish().is_ok(), !encoding.compresses());
                }
                body.extend(encoder.finish());
                for piece_len in [1, 7, 1000, 100_000] {
                    let decoded = decode(*encoding, &body, piece_len, 100);
                    assert!(decoded.as_ref() == Ok(&whole), "{encoding:?}: {:?}", decoded.err());
                }
            }
            assert_eq!(decode(*encoding, b"", 1, 100), Ok(Vec::new()));
        }
    }

    #[test]
    fn body_of_another_encoding_is_refused() {
        for encoding in Encoding::ALL.iter().filter(|encoding| encoding.compresses()) {
            let mut whole = Vec::new();
            encoding.compress(b"hello hello hello", &mut whole);
            assert_eq!(decode(*encoding, &whole, 3, 100).unwrap(), b"hello hello hello");
            let garbage_behind = [&whole[..], b"garbage"].concat();
            for corrupt in [b"garbage garbage", &whole[..whole.len() - 1], &garbage_behind, &whole.repeat(2)]
            {
                for piece_len in [1, 100] {
                    let outcome = decode(*encoding, corrupt, piece_len, 100);
                    assert!(outcome.is_err(), "{encoding:?} of {corrupt:?}");
                }
            }
        }
    }
}
