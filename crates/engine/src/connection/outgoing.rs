//! Encoding of outgoing messages. It happens before the connection is locked, since a message's code is arbitrary and
//! other calls need the lock.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use thalweg_core::chain::Chain;
use thalweg_http2::{SendError, StreamId};

use super::buffer_pool;
use crate::encode::Encode;
use crate::grpc::codec::{self, Compress};
use crate::grpc::compression::Encoding;
use crate::grpc::envelope::{self, PREFIX_LEN};
use crate::status::{Code, Status};

/// A batch up to this size, in bytes, is copied after its frame header. A larger one is handed over without a copy.
const COPY_MAX: usize = 4 * 1024;

/// Encoding settings for the messages of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(super) message_size_max: usize,
    /// Smaller messages are not compressed. `u32::MAX` without an encoding. With 0 all messages are compressed, even
    /// if they grow.
    compressed_from: u32,
    pub(crate) encoding: Encoding,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::new(usize::MAX, Encoding::Identity, 0)
    }
}

impl Outgoing {
    pub(crate) fn new(message_size_max: usize, encoding: Encoding, compression_threshold: usize) -> Self {
        let compressed_from = if encoding.compresses() {
            u32::try_from(compression_threshold).unwrap_or(u32::MAX)
        } else {
            u32::MAX
        };
        Self { message_size_max, compressed_from, encoding }
    }

    /// Returns a copy without compression.
    pub(crate) fn uncompressed(&self) -> Self {
        Self::new(self.message_size_max, Encoding::Identity, 0)
    }

    /// Returns a copy with this compression.
    pub(crate) fn compressed(&self, encoding: Encoding, compression_threshold: usize) -> Self {
        Self::new(self.message_size_max, encoding, compression_threshold)
    }

    /// Returns the compression of a message of `len` bytes.
    fn compress<T: Encode>(&self, message: &T, len: usize) -> Compress {
        let is_compressed = len >= self.compressed_from as usize && message.may_be_compressed();
        let encoding = if is_compressed { self.encoding } else { Encoding::Identity };
        Compress { encoding, always: self.compressed_from == 0 }
    }

    /// Appends one message with its prefix.
    pub(crate) fn encode<T: Encode>(&self, message: &T, out: &mut Chain) -> Result<(), Status> {
        if T::IS_FRAMED {
            message.encode_chained(out);
            return Ok(());
        }
        let (mark, before) = (out.mark(), out.len());
        let encoded = guarded(|| {
            let len = self.permit(message.encoded_len())?;
            codec::encode_chained(message, len, self.compress(message, len), out).map_err(Status::from)
        });
        let encoded = encoded.and_then(|encoded| encoded).inspect_err(|_| out.truncate(mark));
        message.note_encoded(encoded.as_ref().map(|()| out.len() - before - PREFIX_LEN));
        encoded
    }

    /// Encodes the only message of a stream: a small one is appended to `encode_buffer`, a larger one gets a buffer of
    /// its own.
    ///
    /// # Errors
    /// The message may not be sent, or its code has failed. `encode_buffer` is unchanged then.
    #[inline]
    pub(crate) fn encode_single<T: Encode>(
        &self,
        message: &T,
        encode_buffer: &mut Vec<u8>,
    ) -> Result<Single, Status> {
        if T::IS_FRAMED {
            return Ok(framed(message, encode_buffer));
        }
        let (start, mut len) = (encode_buffer.len(), 0);
        let encoded = guarded(|| {
            len = message.encoded_len();
            let is_small = len <= COPY_MAX.min(self.message_size_max) && len < self.compressed_from as usize;
            if is_small && let Ok(prefix) = envelope::prefix(false, len) {
                encode_buffer.extend_from_slice(&prefix);
                message.encode(encode_buffer);
            }
            is_small
        });
        let end = start + PREFIX_LEN + len;
        let status = match encoded {
            Ok(true) if encode_buffer.len() == end => {
                message.note_encoded(Ok(len));
                return Ok(Single::Small(start..end));
            }
            Ok(false) => {
                let mut wire = Chain::default();
                self.encode(message, &mut wire)?;
                return Ok(Single::Large(Box::new(wire)));
            }
            Ok(true) => {
                let found = encode_buffer.len().saturating_sub(start + PREFIX_LEN);
                Status::local(
                    Code::Internal,
                    format!("the message announced {len} bytes but encoded {found}"),
                )
            }
            Err(status) => status,
        };
        encode_buffer.truncate(start);
        message.note_encoded(Err(&status));
        Err(status)
    }

    fn permit(&self, len: usize) -> Result<usize, Status> {
        if len <= self.message_size_max {
            return Ok(len);
        }
        Err(Status::local(
            Code::ResourceExhausted,
            format!(
                "trying to send message larger than max ({len} vs. {}): see the sender's max_encoding_message_size",
                self.message_size_max
            ),
        ))
    }
}

/// Like [`Outgoing::encode_single`], for bodies that are already framed.
#[inline]
fn framed<T: Encode>(body: &T, encode_buffer: &mut Vec<u8>) -> Single {
    let start = encode_buffer.len();
    if body.encoded_len() <= COPY_MAX {
        body.encode(encode_buffer);
        return Single::Small(start..encode_buffer.len());
    }
    let mut wire = Chain::default();
    body.encode_chained(&mut wire);
    Single::Large(Box::new(wire))
}

/// Hands `batch` to the protocol and leaves it empty.
pub(super) fn hand_over(
    http2: &mut thalweg_http2::Connection,
    stream: thalweg_http2::StreamId,
    batch: &mut Chain,
    end_stream: bool,
) -> Result<(), SendError> {
    if let Some(bytes) = batch.as_contiguous()
        && bytes.len() <= COPY_MAX
    {
        let in_place =
            http2.send_data_in_place(stream, bytes.len(), end_stream, |out| out.extend_from_slice(bytes));
        match in_place {
            Ok(true) => {
                batch.clear();
                return Ok(());
            }
            Ok(false) => {}
            Err(error) => return Err(error),
        }
    }
    http2.send_data(stream, batch.take_parts(), end_stream)
}

/// The only message of a stream in one direction, encoded, with its prefix.
pub(crate) enum Single {
    /// Range of the message in the encode buffer.
    Small(Range<usize>),
    Large(Box<Chain>),
}

impl Single {
    /// Returns the length of the message without its prefix, in bytes.
    #[inline]
    pub(crate) fn message_len(&self) -> usize {
        match self {
            Self::Small(range) => range.len().saturating_sub(PREFIX_LEN),
            Self::Large(wire) => wire.len().saturating_sub(PREFIX_LEN),
        }
    }

    /// Sends the message: a small one straight into the connection's output if it fits.
    pub(crate) fn send(
        self,
        http2: &mut thalweg_http2::Connection,
        stream: StreamId,
        encode_buffer: &[u8],
        end_stream: bool,
    ) -> Result<(), SendError> {
        match self {
            Self::Small(range) => {
                let bytes = &encode_buffer[range];
                let copy = |out: &mut Vec<u8>| out.extend_from_slice(bytes);
                if http2.send_data_in_place(stream, bytes.len(), end_stream, copy)? {
                    return Ok(());
                }
                http2.send_data(stream, [Bytes::copy_from_slice(bytes)], end_stream)
            }
            Self::Large(mut wire) => http2.send_data(stream, wire.take_parts(), end_stream),
        }
    }
}

/// Maximum capacity of an encode buffer that is kept, in bytes.
const ENCODE_BUFFER_CAPACITY_MAX: usize = 64 * 1024;

thread_local! {
    /// Buffer that small messages are encoded to before they are copied to the output.
    static ENCODE_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Takes this thread's encode buffer, empty. Returns a new one if it is in use.
#[inline]
pub(crate) fn take_encode_buffer() -> Vec<u8> {
    buffer_pool::take(&ENCODE_BUFFER)
}

/// Stores the buffer for the next [`take_encode_buffer`].
#[inline]
pub(crate) fn put_encode_buffer(encode_buffer: Vec<u8>) {
    buffer_pool::put(&ENCODE_BUFFER, encode_buffer, ENCODE_BUFFER_CAPACITY_MAX);
}

/// Runs a message's code and catches panics.
fn guarded<R>(run: impl FnOnce() -> R) -> Result<R, Status> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| panicked())
}

/// Returns the status of a call whose message panicked.
#[cold]
pub(super) fn panicked() -> Status {
    Status::local(Code::Internal, "encoding the message panicked")
}
