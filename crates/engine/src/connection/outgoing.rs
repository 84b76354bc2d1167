//! A message on its way out: straight into the connection's output where it is small, through a [`Chain`] otherwise.

use std::panic::{AssertUnwindSafe, catch_unwind};

use thalweg_http2::SendError;

use crate::chain::Chain;
use crate::encode::Encode;
use crate::grpc::codec;
use crate::grpc::compression::Encoding;
use crate::grpc::envelope::{self, PREFIX_LEN};
use crate::status::Status;

/// A batch up to this size is copied behind its frame header; a larger one is handed over as it is.
const COPY_MAX: usize = 4 * 1024;

/// How messages of one stream are encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) message_size_max: usize,
    pub(crate) encoding: Encoding,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self { message_size_max: usize::MAX, encoding: Encoding::Identity }
    }
}

impl Outgoing {
    /// Appends one message with its prefix.
    pub(crate) fn encode<T: Encode>(&self, message: &T, out: &mut Chain) -> Result<(), Status> {
        let mark = out.mark();
        let encoded = guarded(|| {
            let len = self.permit(message.encoded_len())?;
            codec::encode_chained(message, len, self.encoding, out).map_err(Status::from)
        });
        encoded.and_then(|encoded| encoded).inspect_err(|_| out.truncate(mark))
    }

    /// `message` as one to be encoded in place; `None` where it is too large for that, or may be compressed.
    #[inline]
    pub(crate) fn small<'a, T: Encode>(&self, message: &'a T) -> Result<Option<SmallMessage<'a, T>>, Status> {
        let len = self.check(message)?;
        if len > COPY_MAX || (len > 0 && self.encoding.compresses()) {
            return Ok(None);
        }
        Ok(Some(SmallMessage { message, len, prefix: envelope::prefix(false, len)? }))
    }

    /// The encoded length, if the message may be sent.
    #[inline]
    pub(crate) fn check<T: Encode>(&self, message: &T) -> Result<usize, Status> {
        self.permit(guarded(|| message.encoded_len())?)
    }

    #[inline]
    fn permit(&self, len: usize) -> Result<usize, Status> {
        if len <= self.message_size_max {
            return Ok(len);
        }
        Err(Status::resource_exhausted(format!(
            "trying to send message larger than max ({len} vs. {})",
            self.message_size_max
        )))
    }
}

/// Gives `batch` to the protocol and leaves it empty.
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

/// Sends one message that is the only one, straight into the connection's output where it fits. How long it is, without
/// its prefix.
pub(crate) fn send_single<T: Encode>(
    http2: &mut thalweg_http2::Connection,
    stream: thalweg_http2::StreamId,
    message: &T,
    outgoing: &Outgoing,
    end_stream: bool,
) -> Result<Result<usize, SendError>, Status> {
    if let Some(small) = outgoing.small(message)? {
        let mut encoded = Ok(());
        let sent = http2.send_data_in_place(stream, small.envelope_len(), end_stream, |out| {
            encoded = small.encode(out);
        });
        encoded?;
        match sent {
            Ok(true) => return Ok(Ok(small.len)),
            Ok(false) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    let mut wire = Chain::default();
    outgoing.encode(message, &mut wire)?;
    let len = wire.len() - PREFIX_LEN;
    Ok(http2.send_data(stream, wire.take_parts(), end_stream).map(|()| len))
}

/// A message that is encoded straight into the connection's output.
pub(crate) struct SmallMessage<'a, T> {
    message: &'a T,
    len: usize,
    prefix: [u8; PREFIX_LEN],
}

impl<T: Encode> SmallMessage<'_, T> {
    /// The length of the message with its prefix, in bytes.
    #[inline]
    pub(crate) fn envelope_len(&self) -> usize {
        PREFIX_LEN + self.len
    }

    /// Appends the message and its prefix, where space for exactly [`envelope_len`](Self::envelope_len) bytes was
    /// announced.
    ///
    /// A message that panics or miscounts may cost its own call, but not the connection: the space is filled all the
    /// same, behind a compressed flag that does not exist, so that no peer takes it for a message before it learns of
    /// the error.
    #[inline]
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), Status> {
        let start = out.len();
        out.extend_from_slice(&self.prefix);
        let encoded = guarded(|| self.message.encode(out));
        if encoded.is_ok() && out.len() - start == self.envelope_len() {
            return Ok(());
        }
        encoded.and(Err(self.fill(start, out)))
    }

    #[cold]
    fn fill(&self, start: usize, out: &mut Vec<u8>) -> Status {
        const NO_FLAG: u8 = 0xff;
        let encoded = out.len().saturating_sub(start + PREFIX_LEN);
        out.resize(start + self.envelope_len(), 0);
        out[start] = NO_FLAG;
        Status::internal(format!("the message announced {} bytes and encoded {encoded}", self.len))
    }
}

/// Runs code of a message. It often runs under the connection's lock, which other calls need, too.
fn guarded<R>(run: impl FnOnce() -> R) -> Result<R, Status> {
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|_| Status::internal("the message panicked when it was encoded"))
}
