//! Messages of one stream, on their way out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use thalweg_http2::SendError;
use tonic::Status;

use super::slot::keep_waker;
use super::{Connection, SlotKey};
use crate::chain::Chain;
use crate::grpc::codec;
use crate::grpc::compression::Encoding;
use crate::grpc::envelope::{self, PREFIX_LEN};
use crate::measure::CallMeasure;
use crate::message::Message;

/// Messages are packed until a batch has this many bytes: enough for a system call to be worth it, little enough
/// that the peer can start on the first while the rest is encoded.
const BATCH_LEN: usize = 64 * 1024;
/// A batch up to this size is copied behind its frame header; a larger one is handed over as it is.
const COPY_MAX: usize = 4 * 1024;
/// A stream with this many bytes queued in the protocol takes no more until it has fallen below the low-water mark.
const QUEUE_HIGH_WATER: usize = 256 * 1024;
/// Batches that one poll sends before it lets other tasks run.
const BATCHES_PER_POLL: usize = 8;

/// `config` with the marks that a [`SendLoop`] can work with: with a low-water mark above its own bound, or of 0, a stream
/// would never become writable again.
pub(crate) fn fit(config: thalweg_http2::Config) -> thalweg_http2::Config {
    let send_queue_low_water = config.send_queue_low_water.clamp(1, QUEUE_HIGH_WATER);
    thalweg_http2::Config { send_queue_low_water, output_target: config.output_target.max(1), ..config }
}

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
    pub(crate) fn encode<T: Message>(&self, message: &T, out: &mut Chain) -> Result<(), Status> {
        let mark = out.mark();
        let encoded = guarded(|| {
            let len = self.permit(message.encoded_len())?;
            codec::encode_chained(message, len, self.encoding, out).map_err(Status::from)
        });
        encoded.and_then(|encoded| encoded).inspect_err(|_| out.truncate(mark))
    }

    /// `message` as one to be encoded in place; `None` where it is too large for that, or may be compressed.
    #[inline]
    pub(crate) fn small<'a, T: Message>(
        &self,
        message: &'a T,
    ) -> Result<Option<SmallMessage<'a, T>>, Status> {
        let len = self.check(message)?;
        if len > COPY_MAX || (len > 0 && self.encoding.compresses()) {
            return Ok(None);
        }
        Ok(Some(SmallMessage { message, len, prefix: envelope::prefix(false, len)? }))
    }

    /// The encoded length, if the message may be sent.
    #[inline]
    pub(crate) fn check<T: Message>(&self, message: &T) -> Result<usize, Status> {
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

/// How a [`SendLoop`] ended.
#[derive(Debug)]
pub(crate) enum SendOutcome {
    /// The source has ended and all its messages are handed over.
    Done,
    /// The source, or encoding one of its messages, failed.
    Failed(Status),
    /// The stream is gone: reset, or its connection lost.
    Gone,
}

/// Moves messages from a source to a stream, as flow control permits: never more than a batch and the stream's queue
/// are in memory.
///
/// Messages that are ready together are packed together and go out when the source has no more at hand, or the batch
/// is full.
pub(crate) struct SendLoop<S> {
    connection: Arc<Connection>,
    key: SlotKey,
    source: S,
    outgoing: Outgoing,
    batch: Chain,
    /// The source has ended; what is left is to hand the last batch over.
    ended: Option<Result<(), Status>>,
    /// Whether END_STREAM goes with the last batch (a client's half-close) or trailers follow (a server).
    end_stream: bool,
    /// Client: what was handed over so far, for as long as the call may begin anew on another connection.
    handed_over: Option<Vec<u8>>,
    measure: CallMeasure,
}

/// A call that has handed more bytes over than this does not begin anew.
const HANDED_OVER_LEN_MAX: usize = 64 * 1024;

impl<S, T> SendLoop<S>
where
    S: Stream<Item = Result<T, Status>> + Unpin,
    T: Message,
{
    pub(crate) fn new(
        connection: Arc<Connection>,
        key: SlotKey,
        source: S,
        outgoing: Outgoing,
        end_stream: bool,
        measure: CallMeasure,
    ) -> Self {
        let batch = Chain::default();
        let (ended, handed_over) = (None, None);
        Self { connection, key, source, outgoing, batch, ended, end_stream, handed_over, measure }
    }

    /// Keeps what it hands over, within a bound, until it is told that nobody needs it again.
    pub(crate) fn keep_handed_over(&mut self) {
        self.handed_over = Some(Vec::new());
    }

    /// From now on the call stays where it is.
    pub(crate) fn drop_handed_over(&mut self) {
        self.handed_over = None;
    }

    /// Whether all that was handed over is still there.
    pub(crate) fn can_restart(&self) -> bool {
        self.handed_over.is_some()
    }

    /// Sends everything again, on another stream, and goes on from there. `is_done`: the source has ended.
    pub(crate) fn restart(&mut self, connection: Arc<Connection>, key: SlotKey, is_done: bool) {
        let rest = self.batch.take_parts();
        self.batch.push(Bytes::from(self.handed_over.take().unwrap_or_default()));
        for part in rest {
            self.batch.push(part);
        }
        if is_done {
            self.ended = Some(Ok(()));
        }
        (self.connection, self.key) = (connection, key);
    }

    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<SendOutcome> {
        for _ in 0..BATCHES_PER_POLL {
            let pending = self.fill(cx);
            match self.poll_flush(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(Gone)) => return Poll::Ready(SendOutcome::Gone),
                Poll::Ready(Ok(())) => {}
            }
            match self.ended.take() {
                Some(Ok(())) => return Poll::Ready(SendOutcome::Done),
                Some(Err(status)) => return Poll::Ready(SendOutcome::Failed(status)),
                None if pending => return Poll::Pending,
                None => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Packs messages until the batch is full or the source has none at hand; whether it was the latter.
    fn fill(&mut self, cx: &mut Context<'_>) -> bool {
        while self.ended.is_none() && self.batch.len() < BATCH_LEN {
            match Pin::new(&mut self.source).poll_next(cx) {
                Poll::Pending => return true,
                Poll::Ready(None) => self.ended = Some(Ok(())),
                Poll::Ready(Some(Err(status))) => self.ended = Some(Err(status)),
                Poll::Ready(Some(Ok(message))) => {
                    let before = self.batch.len();
                    match self.outgoing.encode(&message, &mut self.batch) {
                        Ok(()) => self.measure.sent(self.batch.len() - before - PREFIX_LEN),
                        Err(status) => self.ended = Some(Err(status)),
                    }
                }
            }
        }
        false
    }

    /// Hands the batch over when the stream has room for it. Also notes who is to be woken when the stream is reset.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let last = self.end_stream && matches!(self.ended, Some(Ok(())));
        let mut state = self.connection.lock();
        let Some((slot, http2, _)) = state.parts(self.key) else { return Poll::Ready(Err(Gone)) };
        if slot.send_closed {
            return Poll::Ready(Err(Gone));
        }
        keep_waker(&mut slot.sender, cx.waker());
        if self.batch.is_empty() && !last {
            return Poll::Ready(Ok(()));
        }
        if http2.queued(slot.stream) >= QUEUE_HIGH_WATER {
            return Poll::Pending;
        }
        if last {
            slot.send_closed = true;
        }
        let stream = slot.stream;
        if let Some(handed_over) = &mut self.handed_over {
            if handed_over.len() + self.batch.len() <= HANDED_OVER_LEN_MAX {
                self.batch.copy_to(handed_over);
            } else {
                self.handed_over = None;
            }
        }
        let sent = hand_over(http2, stream, &mut self.batch, last);
        state.load.completed += 1;
        state.notify_driver();
        Poll::Ready(sent.map_err(|_| Gone))
    }
}

/// The stream is gone.
struct Gone;

/// Gives `batch` to the protocol and leaves it empty.
pub(crate) fn hand_over(
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
    http2.send_data_parts(stream, batch.take_parts(), end_stream)
}

/// Sends one message that is the only one, straight into the connection's output where it fits. How long it is, without its
/// prefix.
pub(crate) fn send_single<T: Message>(
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
    Ok(http2.send_data_parts(stream, wire.take_parts(), end_stream).map(|()| len))
}

/// A message that is encoded straight into the connection's output.
pub(crate) struct SmallMessage<'a, T> {
    message: &'a T,
    len: usize,
    prefix: [u8; PREFIX_LEN],
}

impl<T: Message> SmallMessage<'_, T> {
    /// The length of the message with its prefix, in bytes.
    #[inline]
    pub(crate) fn envelope_len(&self) -> usize {
        PREFIX_LEN + self.len
    }

    /// Appends the message and its prefix, where room for exactly [`envelope_len`](Self::envelope_len) bytes was announced.
    ///
    /// A message that panics or miscounts may cost its own call, but not the connection: the room is filled all the same,
    /// behind a compressed flag that does not exist, so that no peer takes it for a message before it learns of the error.
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
