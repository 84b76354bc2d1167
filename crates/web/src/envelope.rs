//! Message envelopes of Connect and gRPC-Web: `flags (1 byte) length (4 bytes, big-endian) payload`.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use thalweg_engine::{Code, Encoding, Prefix, Status};

use crate::compression::{self, Compression};
use crate::grpc_web::text;

/// Length of the prefix of each payload, in bytes.
pub const PREFIX_LEN: usize = Prefix::LEN;

/// Flag of a compressed payload.
pub const COMPRESSED: u8 = 1;

/// Maximum size of the payload that ends a stream, in bytes. It is no message, so message limits do not apply.
pub const END_SIZE_MAX: usize = 1 << 20;

/// Appends an envelope to `out`.
///
/// # Errors
/// RESOURCE_EXHAUSTED if the payload exceeds the range of the length prefix.
pub fn put(flags: u8, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Status> {
    let Ok(len) = u32::try_from(payload.len()) else {
        let why = format!("message of {} bytes exceeds the maximum of 4294967295", payload.len());
        return Err(Status::new(Code::ResourceExhausted, why));
    };
    out.reserve(PREFIX_LEN + payload.len());
    out.push(flags);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

/// Appends a message in its envelope to `out`, compressed if that makes it smaller.
///
/// # Errors
/// RESOURCE_EXHAUSTED if the payload exceeds the range of the length prefix.
pub fn put_message(message: &[u8], compression: &Compression, out: &mut Vec<u8>) -> Result<(), Status> {
    match compression.compress(message) {
        Some(compressed) => put(COMPRESSED, &compressed, out),
        None => put(0, message, out),
    }
}

/// Part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A message, decompressed.
    Message(Bytes),
    /// The end of the stream, decompressed.
    End(Bytes),
}

/// Part of a response stream, decoded by a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponsePart {
    /// A message.
    Message(Bytes),
    /// The end of a successful call, with its trailing metadata.
    End(HeaderMap),
}

/// Reads the envelopes of a stream from pieces of any size.
///
/// It buffers one incomplete envelope and the pushed bytes that are not taken yet: after a push, take until nothing is
/// left. Errors are permanent.
#[derive(Debug)]
pub struct EnvelopeReader {
    /// Flag of the end of the stream, or 0 if the stream has none.
    end_flag: u8,
    encoding: Encoding,
    size_max: usize,
    /// Decodes Base64 in text mode.
    text: Option<text::Decoder>,
    /// Error of the Base64 decoder. Earlier envelopes are returned first.
    text_failure: Option<Status>,
    /// Start of an envelope, from earlier pieces.
    buffered: BytesMut,
    /// Rest of the latest piece.
    piece: Bytes,
    has_ended: bool,
    failure: Option<Status>,
}

impl EnvelopeReader {
    /// Reads messages of at most `size_max` bytes; those flagged as compressed use `encoding`. `end_flag` is the flag
    /// of the end of the stream, or 0 if the stream ends with its last message.
    pub fn new(end_flag: u8, encoding: Encoding, size_max: usize) -> EnvelopeReader {
        EnvelopeReader {
            end_flag,
            encoding,
            size_max,
            text: None,
            text_failure: None,
            buffered: BytesMut::new(),
            piece: Bytes::new(),
            has_ended: false,
            failure: None,
        }
    }

    /// Decodes Base64 if `is_text`: in gRPC-Web, each piece may be padded.
    #[must_use]
    pub fn with_text(mut self, is_text: bool) -> EnvelopeReader {
        self.text = is_text.then(text::Decoder::default);
        self
    }

    /// Adds received bytes.
    pub fn push(&mut self, mut piece: Bytes) {
        if self.failure.is_some() || self.text_failure.is_some() {
            return;
        }
        if let Some(decoder) = &mut self.text {
            match decoder.decode(&piece) {
                Ok(bytes) => piece = bytes.into(),
                Err(failure) => {
                    self.text_failure = Some(failure);
                    return;
                }
            }
        }
        if self.piece.is_empty() {
            self.piece = piece;
        } else {
            // The rest may hold several envelopes, but `buffered` is read the same way.
            self.buffered.extend_from_slice(&self.piece);
            self.buffered.extend_from_slice(&piece);
            self.piece = Bytes::new();
        }
    }

    /// Returns the next complete part, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED for a message that is too large, as soon as its prefix shows it. INTERNAL for a violation of
    /// the protocol or for invalid Base64.
    pub fn take(&mut self) -> Result<Option<Part>, Status> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let taken = match (self.try_take(), &self.text_failure) {
            (Ok(None), Some(failure)) => Err(failure.clone()),
            (taken, _) => taken,
        };
        if let Err(failure) = &taken {
            self.failure = Some(failure.clone());
            (self.buffered, self.piece) = (BytesMut::new(), Bytes::new());
        }
        taken
    }

    /// Returns the next message of a stream that ends with its last message, such as a request.
    pub fn message(&mut self) -> Result<Option<Bytes>, Status> {
        Ok(self.take()?.map(|(Part::Message(message) | Part::End(message))| message))
    }

    /// Ends the stream, after everything was taken.
    ///
    /// # Errors
    /// INTERNAL if the stream ends inside an envelope or before its end envelope.
    pub fn finish(&self) -> Result<(), Status> {
        if let Some(failure) = self.text_failure.as_ref().or(self.failure.as_ref()) {
            return Err(failure.clone());
        }
        self.text.as_ref().map_or(Ok(()), text::Decoder::finish)?;
        match self.len() {
            0 => Ok(()),
            received => {
                Err(internal(format!("the stream ended inside a message, {received} bytes after its start")))
            }
        }
    }

    /// Returns whether the end of the stream was taken.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns whether all received bytes were taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.text.as_ref().is_none_or(text::Decoder::is_empty)
    }

    /// Returns the number of received bytes that were not taken.
    pub fn len(&self) -> usize {
        self.buffered.len() + self.piece.len()
    }

    fn try_take(&mut self) -> Result<Option<Part>, Status> {
        if self.has_ended {
            return match self.len() {
                0 => Ok(None),
                _ => Err(internal("bytes follow the end of the stream")),
            };
        }
        let Some((flags, len)) = self.prefix() else {
            return Ok(None);
        };
        let is_end = self.checked(flags)?;
        let size_max = if is_end { END_SIZE_MAX } else { self.size_max };
        if len > size_max {
            return Err(compression::too_large(len, size_max));
        }
        let Some(payload) = self.envelope(PREFIX_LEN + len) else {
            return Ok(None);
        };
        let encoding = if flags & COMPRESSED == 0 { Encoding::Identity } else { self.encoding };
        let payload = compression::decompress(encoding, payload, size_max)?;
        self.has_ended = is_end;
        Ok(Some(if is_end { Part::End(payload) } else { Part::Message(payload) }))
    }

    /// Returns the flags and the length of the next envelope.
    fn prefix(&mut self) -> Option<(u8, usize)> {
        self.fill(PREFIX_LEN);
        let front = if self.buffered.is_empty() { &self.piece[..] } else { &self.buffered[..] };
        let [flags, a, b, c, d] = *front.first_chunk()?;
        Some((flags, u32::from_be_bytes([a, b, c, d]) as usize))
    }

    /// Validates flags. Returns whether they mark the end of the stream.
    fn checked(&self, flags: u8) -> Result<bool, Status> {
        if flags & !(COMPRESSED | self.end_flag) != 0 {
            return Err(internal(format!("received an envelope with the unexpected flags {flags}")));
        }
        if flags & COMPRESSED != 0 && !self.encoding.compresses() {
            return Err(internal("received a compressed message in a stream without compression"));
        }
        Ok(flags & self.end_flag != 0)
    }

    /// Takes the payload of an envelope of `len` bytes if it is complete, without a copy if it is in one piece.
    fn envelope(&mut self, len: usize) -> Option<Bytes> {
        self.fill(len);
        let mut envelope = if self.buffered.is_empty() {
            (self.piece.len() >= len).then(|| self.piece.split_to(len))?
        } else {
            (self.buffered.len() >= len).then(|| self.buffered.split_to(len).freeze())?
        };
        envelope.advance(PREFIX_LEN);
        Some(envelope)
    }

    /// Moves bytes from `piece` to complete `buffered` up to `len`, unless `piece` alone has them.
    fn fill(&mut self, len: usize) {
        if self.buffered.is_empty() && self.piece.len() >= len {
            return;
        }
        let missing = len.saturating_sub(self.buffered.len()).min(self.piece.len());
        self.buffered.extend_from_slice(&self.piece.split_to(missing));
    }
}

/// Reads a response stream at a client: push pieces, then take until nothing is left.
#[derive(Debug)]
pub struct ResponseReader {
    reader: EnvelopeReader,
    read_end: fn(&[u8]) -> Result<HeaderMap, Status>,
    /// Outcome from the headers, valid if there is no body.
    headers_only: Option<Result<HeaderMap, Status>>,
    /// Error message for a response that ends early.
    truncated: &'static str,
}

impl ResponseReader {
    pub(crate) fn new(
        reader: EnvelopeReader,
        read_end: fn(&[u8]) -> Result<HeaderMap, Status>,
        headers_only: Option<Result<HeaderMap, Status>>,
        truncated: &'static str,
    ) -> ResponseReader {
        ResponseReader { reader, read_end, headers_only, truncated }
    }

    /// Adds received bytes.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.headers_only = None;
        }
        self.reader.push(piece);
    }

    /// Returns the next complete part.
    ///
    /// # Errors
    /// The server's status of the call, or the error in the stream.
    pub fn take(&mut self) -> Result<Option<ResponsePart>, Status> {
        match self.reader.take()? {
            None => Ok(None),
            Some(Part::Message(message)) => Ok(Some(ResponsePart::Message(message))),
            Some(Part::End(end)) => (self.read_end)(&end).map(|trailers| Some(ResponsePart::End(trailers))),
        }
    }

    /// Ends the body. Returns the trailing metadata if the headers alone are a successful response.
    ///
    /// # Errors
    /// The status in the headers of a response without a body; INTERNAL if the response is truncated.
    pub fn finish(&self) -> Result<Option<HeaderMap>, Status> {
        self.reader.finish()?;
        if self.reader.has_ended() {
            return Ok(None);
        }
        match &self.headers_only {
            Some(outcome) => outcome.clone().map(Some),
            None => Err(internal(self.truncated)),
        }
    }
}

fn internal(why: impl Into<String>) -> Status {
    Status::new(Code::Internal, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Seeded, failure};

    const END: u8 = 2;

    /// Returns the parts of `wire`, pushed in pieces that end at `cuts`, or the error.
    fn read(reader: &mut EnvelopeReader, wire: &[u8], cuts: &[usize]) -> Result<Vec<Part>, Status> {
        let mut parts = Vec::new();
        let mut at = 0;
        for cut in cuts.iter().copied().chain([wire.len()]) {
            reader.push(Bytes::copy_from_slice(&wire[at..cut]));
            at = cut;
            while let Some(part) = reader.take()? {
                parts.push(part);
            }
        }
        reader.finish()?;
        Ok(parts)
    }

    fn message(bytes: &'static [u8]) -> Part {
        Part::Message(Bytes::from_static(bytes))
    }

    #[test]
    fn request_has_no_end_envelope() {
        let mut reader = EnvelopeReader::new(0, Encoding::Identity, 10);
        reader.push(Bytes::from_static(b"\0\0\0\0\x01a\0\0\0\0\0\x02"));
        assert_eq!(reader.message().unwrap().as_deref(), Some(&b"a"[..]));
        assert_eq!(reader.message().unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(reader.message().unwrap(), None);
        assert_eq!(failure(reader.finish()).0, Code::Internal);
        reader.push(Bytes::from_static(b"\0\0\0\x02{}"));
        let flags = "received an envelope with the unexpected flags 2".to_owned();
        assert_eq!(failure(reader.message()), (Code::Internal, flags));
    }

    #[test]
    fn stream_round_trips_at_any_piece_boundary() {
        let mut wire = Vec::new();
        let gzip = Compression { encoding: Encoding::Gzip, threshold: 30 };
        put_message(b"abc", &gzip, &mut wire).unwrap();
        put_message(b"", &gzip, &mut wire).unwrap();
        put_message(&[7; 40], &gzip, &mut wire).unwrap();
        put(END, b"{}", &mut wire).unwrap();
        assert_eq!(wire[13], COMPRESSED);
        let expected =
            [message(b"abc"), message(b""), message(&[7; 40]), Part::End(Bytes::from_static(b"{}"))];
        for first in 0..=wire.len() {
            for second in first..=wire.len() {
                let mut reader = EnvelopeReader::new(END, Encoding::Gzip, 40);
                assert_eq!(read(&mut reader, &wire, &[first, second]).unwrap(), expected);
                assert!(reader.has_ended());
            }
        }
        // Everything is pushed before anything is taken.
        let mut reader = EnvelopeReader::new(END, Encoding::Gzip, 40);
        wire.chunks(3).for_each(|piece| reader.push(Bytes::copy_from_slice(piece)));
        assert_eq!(read(&mut reader, b"", &[]).unwrap(), expected);
        // A stream that ends inside an envelope is an error.
        let ends = [0, 8, 13, wire.len() - 7, wire.len()];
        for cut in 0..wire.len() {
            let outcome = read(&mut EnvelopeReader::new(END, Encoding::Gzip, 40), &wire[..cut], &[]);
            assert_eq!(outcome.is_ok(), ends.contains(&cut), "{cut}");
        }
    }

    #[test]
    fn message_in_one_piece_is_not_copied() {
        let check = |front: &'static [u8], piece: &'static [u8], at: usize| {
            let mut reader = EnvelopeReader::new(0, Encoding::Identity, 3);
            reader.push(Bytes::from_static(front));
            assert_eq!(reader.take().unwrap(), None);
            reader.push(Bytes::from_static(piece));
            let parts: Vec<Part> = std::iter::from_fn(|| reader.take().unwrap()).collect();
            let Some(Part::Message(last)) = parts.last() else { panic!("no message") };
            assert_eq!(last.as_ptr(), piece[at..].as_ptr());
        };
        check(b"", b"\0\0\0\0\x03abc", 5);
        // Nor is a message after a split one.
        check(b"\0\0", b"\0\0\x03abc\0\0\0\0\x03abc", 11);
        check(b"\0\0\0\0\x03a", b"bc\0\0\0\0\x03abc", 7);
    }

    #[test]
    fn invalid_envelopes_are_rejected() {
        let check = |end_flag: u8, encoding: Encoding, wire: &[u8], code: Code, why: &str| {
            let mut reader = EnvelopeReader::new(end_flag, encoding, 3);
            assert_eq!(failure(read(&mut reader, wire, &[])), (code, why.to_owned()));
            // The failure is permanent, and nothing is buffered.
            reader.push(Bytes::from_static(b"\0\0\0\0\0"));
            let again = if reader.take().is_err() { reader.take().map(|_| ()) } else { reader.finish() };
            assert_eq!(again.unwrap_err().code(), code);
        };
        let identity = Encoding::Identity;
        let large =
            "received message larger than max (4 vs. 3): see the receiver's max_decoding_message_size";
        check(END, identity, b"\0\0\0\0\x04", Code::ResourceExhausted, large);
        let huge = "received message larger than max (4294967295 vs. 3): see the receiver's max_decoding_message_size";
        check(END, identity, b"\0\xff\xff\xff\xff", Code::ResourceExhausted, huge);
        let flags = "received an envelope with the unexpected flags 4";
        check(END, identity, b"\x04\0\0\0\0", Code::Internal, flags);
        let flags = "received an envelope with the unexpected flags 2";
        check(0, identity, b"\x02\0\0\0\0", Code::Internal, flags);
        let compressed = "received a compressed message in a stream without compression";
        check(END, identity, b"\x01\0\0\0\0", Code::Internal, compressed);
        check(END, identity, b"\x03\0\0\0\0", Code::Internal, compressed);
        let trailing = "bytes follow the end of the stream";
        check(END, identity, b"\x02\0\0\0\0\0", Code::Internal, trailing);
        let large = "received message larger than max (1048577 vs. 1048576): see the receiver's \
                     max_decoding_message_size";
        check(END, identity, b"\x02\x00\x10\x00\x01", Code::ResourceExhausted, large);
        let mut bomb = Vec::new();
        Encoding::Gzip.compress(&[0; 1000], &mut bomb);
        bomb.splice(..0, [1, 0, 0, 0, bomb.len() as u8]);
        let mut reader = EnvelopeReader::new(END, Encoding::Gzip, 999);
        assert_eq!(failure(read(&mut reader, &bomb, &[])).0, Code::ResourceExhausted);
    }

    #[test]
    fn end_may_exceed_message_limit() {
        let mut reader = EnvelopeReader::new(END, Encoding::Identity, 0);
        assert_eq!(
            read(&mut reader, b"\x02\0\0\0\x03abc", &[]).unwrap(),
            [Part::End(Bytes::from_static(b"abc"))]
        );
    }

    #[test]
    fn random_bytes_yield_messages_or_an_error() {
        let mut seeded = Seeded(1);
        for _ in 0..3_000 {
            let mut wire = seeded.bytes(0..60);
            // Most random lengths would be too large.
            for at in (0..wire.len()).filter(|at| at % 5 < 4) {
                wire[at] &= 3 * u8::from(at % 5 == 0);
            }
            let mut cuts: Vec<usize> = (0..4).map(|_| seeded.below(wire.len() + 1)).collect();
            cuts.sort_unstable();
            let uncut = read(&mut EnvelopeReader::new(END, Encoding::Gzip, 100), &wire, &[]);
            let cut = read(&mut EnvelopeReader::new(END, Encoding::Gzip, 100), &wire, &cuts);
            assert_eq!(uncut.map_err(|status| status.code()), cut.map_err(|status| status.code()));
        }
    }
}
