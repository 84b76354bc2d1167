//! Length-prefixed messages: `Compressed-Flag (1 byte) Message-Length (4 bytes, big-endian) Message`.

use bytes::Bytes;
use tonic::Status;

/// Length of the prefix before each message, in bytes: the compressed flag and the length.
pub const PREFIX_LEN: usize = 5;

/// The largest message that is accepted unless configured otherwise, in bytes: 4 MiB, as in every gRPC stack.
pub const RECEIVED_SIZE_MAX: usize = 4 * 1024 * 1024;

/// The prefix of a message of `len` bytes.
#[inline]
pub fn prefix(compressed: bool, len: usize) -> Result<[u8; PREFIX_LEN], MessageTooLong> {
    let [a, b, c, d] = u32::try_from(len).map_err(|_| MessageTooLong { len })?.to_be_bytes();
    Ok([u8::from(compressed), a, b, c, d])
}

/// Appends one message, whose bytes `encode` appends, with its prefix.
///
/// On an error `out` is as it was.
#[inline]
pub fn emit(
    out: &mut Vec<u8>,
    compressed: bool,
    encode: impl FnOnce(&mut Vec<u8>),
) -> Result<(), MessageTooLong> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_LEN]);
    encode(out);
    match prefix(compressed, out.len() - start - PREFIX_LEN) {
        Ok(prefix) => {
            out[start..start + PREFIX_LEN].copy_from_slice(&prefix);
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// A message to send is longer than its prefix can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {len} bytes cannot be sent: gRPC's length prefix ends at 4294967295")]
pub struct MessageTooLong {
    /// The length of the message, in bytes.
    pub len: usize,
}

impl From<MessageTooLong> for Status {
    fn from(error: MessageTooLong) -> Status {
        Status::resource_exhausted(error.to_string())
    }
}

/// A whole message as it was received, still compressed if its flag says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Envelope<'a> {
    /// It lay whole in the input.
    Borrowed {
        /// The compressed flag.
        compressed: bool,
        /// The message.
        bytes: &'a [u8],
    },
    /// It came in pieces.
    Gathered {
        /// The compressed flag.
        compressed: bool,
        /// The message.
        bytes: Vec<u8>,
    },
}

impl Envelope<'_> {
    /// Whether the message is compressed with the call's `grpc-encoding`.
    pub fn is_compressed(&self) -> bool {
        let (Envelope::Borrowed { compressed, .. } | Envelope::Gathered { compressed, .. }) = self;
        *compressed
    }

    /// The message, compressed or not.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Envelope::Borrowed { bytes, .. } => bytes,
            Envelope::Gathered { bytes, .. } => bytes,
        }
    }

    /// The message, to keep; copied if it was borrowed.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Envelope::Borrowed { bytes, .. } => Bytes::copy_from_slice(bytes),
            Envelope::Gathered { bytes, .. } => Bytes::from(bytes),
        }
    }
}

/// Finds the messages in a body that arrives in slices, cut anywhere.
///
/// A message that lies whole in a slice is lent from it. Another is gathered in a buffer that grows with what arrives:
/// the length that a peer declares reserves nothing by itself.
///
/// ```
/// use thalweg::grpc::envelope::{Deframer, RECEIVED_SIZE_MAX};
///
/// let mut deframer = Deframer::new(RECEIVED_SIZE_MAX, false);
/// let mut input: &[u8] = b"\0\0\0\0\x02hi\0\0\0";
/// assert_eq!(deframer.next(&mut input)?.unwrap().as_bytes(), b"hi");
/// assert_eq!(deframer.next(&mut input)?, None);
/// let mut input: &[u8] = b"\0\0";
/// assert_eq!(deframer.next(&mut input)?.unwrap().as_bytes(), b"");
/// deframer.finish()?;
/// # Ok::<(), thalweg::grpc::envelope::EnvelopeError>(())
/// ```
#[derive(Debug)]
pub struct Deframer {
    size_max: usize,
    compression: bool,
    /// The first `prefix_len` bytes of a prefix. Whole, it is that of the message in `gathered`.
    prefix: [u8; PREFIX_LEN],
    prefix_len: u8,
    gathered: Vec<u8>,
}

impl Deframer {
    /// `size_max` bounds one message in bytes, before decompression; `compression` says that `grpc-encoding` names an
    /// encoding other than identity, without which no message may be flagged as compressed.
    pub fn new(size_max: usize, compression: bool) -> Deframer {
        Deframer { size_max, compression, prefix: [0; PREFIX_LEN], prefix_len: 0, gathered: Vec::new() }
    }

    /// Takes from the front of `input` and returns the next message; `None` when `input` is used up.
    ///
    /// An error ends the call: what follows in the body has no meaning any more.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Envelope<'a>>, EnvelopeError> {
        if self.prefix_len == 0
            && let Some((prefix, rest)) = input.split_first_chunk()
        {
            let (compressed, size) = self.admit(*prefix)?;
            if let Some((bytes, rest)) = rest.split_at_checked(size) {
                *input = rest;
                return Ok(Some(Envelope::Borrowed { compressed, bytes }));
            }
        }
        if input.is_empty() {
            return Ok(None);
        }
        self.next_in_pieces(input)
    }

    /// To be called when the body has ended: an error if that was inside a message.
    pub fn finish(&self) -> Result<(), EnvelopeError> {
        if self.is_between_messages() {
            return Ok(());
        }
        Err(EnvelopeError::Truncated { received: usize::from(self.prefix_len) + self.gathered.len() })
    }

    /// Whether no message is half received.
    #[inline]
    pub fn is_between_messages(&self) -> bool {
        self.prefix_len == 0
    }

    /// Judges a message by its prefix: its compressed flag and its size in bytes.
    #[inline]
    fn admit(&self, prefix: [u8; PREFIX_LEN]) -> Result<(bool, usize), EnvelopeError> {
        let [flag, a, b, c, d] = prefix;
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        if flag <= u8::from(self.compression) && size <= self.size_max {
            return Ok((flag == 1, size));
        }
        Err(match flag {
            0 => EnvelopeError::TooLarge { size, size_max: self.size_max },
            1 if self.compression => EnvelopeError::TooLarge { size, size_max: self.size_max },
            1 => EnvelopeError::UnexpectedCompression,
            _ => EnvelopeError::UnknownFlag(flag),
        })
    }

    fn next_in_pieces<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Envelope<'a>>, EnvelopeError> {
        let have = usize::from(self.prefix_len);
        let piece = split_front(input, PREFIX_LEN - have);
        self.prefix[have..have + piece.len()].copy_from_slice(piece);
        self.prefix_len += piece.len() as u8;
        if usize::from(self.prefix_len) < PREFIX_LEN {
            return Ok(None);
        }

        let (compressed, size) = self.admit(self.prefix)?;
        let missing = size - self.gathered.len();
        if self.gathered.is_empty() && missing <= input.len() {
            self.prefix_len = 0;
            return Ok(Some(Envelope::Borrowed { compressed, bytes: split_front(input, missing) }));
        }
        let piece = split_front(input, missing);
        self.reserve(piece.len(), missing);
        self.gathered.extend_from_slice(piece);
        if piece.len() < missing {
            return Ok(None);
        }
        self.prefix_len = 0;
        Ok(Some(Envelope::Gathered { compressed, bytes: std::mem::take(&mut self.gathered) }))
    }

    /// Makes room for a piece: for as much again as has arrived, so that the copying stays linear, but never for more
    /// than is missing. A message of 100 KiB in pieces of 16 KiB gets 16, 32, 64 and 100 KiB.
    fn reserve(&mut self, piece_len: usize, missing: usize) {
        if self.gathered.capacity() - self.gathered.len() < piece_len {
            self.gathered.reserve_exact(piece_len.max(self.gathered.len()).min(missing));
        }
    }
}

/// What is wrong with a received body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// A prefix declares more than is accepted.
    #[error("received message larger than max ({size} vs. {size_max})")]
    TooLarge {
        /// The declared size, in bytes.
        size: usize,
        /// The largest accepted, in bytes.
        size_max: usize,
    },
    /// The compressed flag is neither 0 nor 1.
    #[error("received unexpected payload format {0}: the compressed flag must be 0 or 1")]
    UnknownFlag(u8),
    /// The compressed flag is set although the call has no encoding.
    #[error("received a message with the compressed flag set, with identity or no grpc-encoding")]
    UnexpectedCompression,
    /// The body ended inside a message.
    #[error("the stream ended inside a message, {received} bytes after its start")]
    Truncated {
        /// What had arrived of the message, its prefix included, in bytes.
        received: usize,
    },
}

impl From<EnvelopeError> for Status {
    fn from(error: EnvelopeError) -> Status {
        match error {
            EnvelopeError::TooLarge { .. } => Status::resource_exhausted(error.to_string()),
            EnvelopeError::UnknownFlag(_)
            | EnvelopeError::UnexpectedCompression
            | EnvelopeError::Truncated { .. } => Status::internal(error.to_string()),
        }
    }
}

/// Takes `len` bytes, or what there is, off the front of `input`.
fn split_front<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (front, rest) = input.split_at(len.min(input.len()));
    *input = rest;
    front
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::grpc::seeded::Seeded;

    const SIZE_MAX: usize = 1000;

    /// One message on the wire, with any flag and any declared length.
    fn wire(flag: u8, declared: u32, message: &[u8]) -> Vec<u8> {
        let mut wire = vec![flag];
        wire.extend(declared.to_be_bytes());
        wire.extend(message);
        wire
    }

    fn messages(pieces: &[&[u8]], compression: bool) -> Result<Vec<(bool, Vec<u8>)>, EnvelopeError> {
        let mut deframer = Deframer::new(SIZE_MAX, compression);
        let mut messages = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(envelope) = deframer.next(&mut input)? {
                messages.push((envelope.is_compressed(), envelope.into_bytes().to_vec()));
            }
            assert_eq!(input, b"", "None means that the input is used up");
        }
        deframer.finish().map(|()| messages)
    }

    fn check(wire: &[u8], compression: bool, expected: &Result<Vec<(bool, Vec<u8>)>, EnvelopeError>) {
        assert_eq!(&messages(&[wire], compression), expected);
        for cut in 0..=wire.len() {
            let (a, b) = wire.split_at(cut);
            assert_eq!(&messages(&[a, b], compression), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = wire.chunks(1).collect();
        assert_eq!(&messages(&bytes, compression), expected, "byte by byte");
    }

    #[test]
    fn messages_and_errors_at_every_split() {
        check(b"", false, &Ok(vec![]));
        check(&wire(0, 0, b""), false, &Ok(vec![(false, vec![])]));
        check(&wire(1, 3, b"abc"), true, &Ok(vec![(true, b"abc".to_vec())]));
        check(&wire(0, 1000, &[7; 1000]), false, &Ok(vec![(false, vec![7; 1000])]));
        check(
            &[wire(0, 1, b"a"), wire(0, 0, b""), wire(0, 2, b"bc")].concat(),
            true,
            &Ok(vec![(false, b"a".to_vec()), (false, vec![]), (false, b"bc".to_vec())]),
        );
        let too_large = EnvelopeError::TooLarge { size: 1001, size_max: SIZE_MAX };
        check(&wire(0, 1001, b""), false, &Err(too_large));
        check(&wire(1, 1001, &[0; 1001]), true, &Err(too_large));
        check(&wire(1, 0, b""), false, &Err(EnvelopeError::UnexpectedCompression));
        check(&wire(2, 0, b""), true, &Err(EnvelopeError::UnknownFlag(2)));
        check(&wire(255, 5000, b""), false, &Err(EnvelopeError::UnknownFlag(255)));
        check(&[0], false, &Err(EnvelopeError::Truncated { received: 1 }));
        check(&wire(0, 1, b""), false, &Err(EnvelopeError::Truncated { received: 5 }));
        check(&wire(0, 9, b"abc"), false, &Err(EnvelopeError::Truncated { received: 8 }));
    }

    #[test]
    fn random_messages_in_random_pieces() {
        for seed in 0..500 {
            let mut seeded = Seeded(seed);
            let sent: Vec<(bool, Vec<u8>)> = (0..seeded.below(12))
                .map(|_| (seeded.below(2) == 1, seeded.bytes(0..SIZE_MAX / 4)))
                .collect();
            let mut wire = Vec::new();
            for (compressed, message) in &sent {
                emit(&mut wire, *compressed, |out| out.extend(message)).unwrap();
            }
            let mut pieces = Vec::new();
            let mut rest: &[u8] = &wire;
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(seeded.below(rest.len().min(300)) + 1);
                pieces.push(piece);
                rest = behind;
            }
            assert_eq!(messages(&pieces, true).as_ref(), Ok(&sent), "seed {seed}");
        }
    }

    #[test]
    fn a_declared_length_reserves_nothing() {
        let mut deframer = Deframer::new(usize::MAX, false);
        let head = wire(0, u32::MAX, &[1; 100]);
        assert_eq!(deframer.next(&mut &head[..]), Ok(None));
        assert!(deframer.gathered.capacity() <= 200, "{}", deframer.gathered.capacity());
        for _ in 0..100 {
            assert_eq!(deframer.next(&mut &[2; 100][..]), Ok(None));
            assert!(deframer.gathered.capacity() <= 2 * deframer.gathered.len());
        }
    }

    #[test]
    fn a_message_that_lies_whole_in_the_input_is_lent() {
        let wire = wire(0, 3, b"abc");
        for prefix_piece in 0..=PREFIX_LEN {
            let mut deframer = Deframer::new(SIZE_MAX, false);
            assert_eq!(deframer.next(&mut &wire[..prefix_piece]), Ok(None));
            let envelope = deframer.next(&mut &wire[prefix_piece..]).unwrap().unwrap();
            assert_eq!(envelope.as_bytes().as_ptr(), wire[PREFIX_LEN..].as_ptr());
        }
    }

    #[test]
    fn errors_have_codes() {
        let check = |error: EnvelopeError, code: Code, message: &str| {
            let status = Status::from(error);
            assert_eq!((status.code(), status.message()), (code, message));
        };
        check(
            EnvelopeError::TooLarge { size: 5_000_000, size_max: RECEIVED_SIZE_MAX },
            Code::ResourceExhausted,
            "received message larger than max (5000000 vs. 4194304)",
        );
        check(
            EnvelopeError::UnknownFlag(2),
            Code::Internal,
            "received unexpected payload format 2: the compressed flag must be 0 or 1",
        );
        check(
            EnvelopeError::Truncated { received: 7 },
            Code::Internal,
            "the stream ended inside a message, 7 bytes after its start",
        );
    }
}
