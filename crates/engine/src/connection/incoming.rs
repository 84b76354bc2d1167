//! The received messages of one stream.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::{Instant, Sleep};

use super::decompression::DecompressionReader;
use super::inbox::ReadUnit;
use super::receiving::{Arrived, Receiving};
use super::shared::Connection;
use super::slot::{End, SlotKey};
use crate::call_context::{CallContext, CallName, Phase};
use crate::grpc::codec::{self, Payload};
use crate::grpc::compression::Encoding;
use crate::grpc::envelope::{self, EnvelopeError, PREFIX_LEN, Prefix};
use crate::grpc::response::ResponseHeaders;
use crate::measure::CallMeasure;
use crate::status::{self, Code, Status};

/// Maximum bytes after a large message that are copied, so that the message can keep the buffer.
const TAIL_MAX: usize = 4 * 1024;

/// The messages of a stream, in order: the requests on a server, the responses on a client.
///
/// Bytes are taken from the connection in bulk and split into messages on the reader's own time. Reading opens the
/// peer's window: an unread stream stops the peer after one receive window.
///
/// If dropped early, a client's cancels the call, and a server's discards the rest of the requests.
pub struct Incoming {
    origin: Origin,
    /// Client: names the call in errors.
    call: Option<CallName>,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that have been read.
    position: usize,
    message_size_max: usize,
    /// Larger messages are not [available](Self::next_at_hand) without polling.
    at_hand_len_max: usize,
    encoding: Encoding,
    measure: CallMeasure,
    /// Atomic, so that a borrower of a lent message can end the call.
    is_finished: AtomicBool,
    trailers: Option<HeaderMap>,
    deadline: Option<Pin<Box<Sleep>>>,
    /// Reader of the connection's compressed messages.
    reader: DecompressionReader,
    /// Length of the last message that was large or compressed.
    large_len: usize,
    /// The last lent message, if it is not in the buffer.
    lent: Bytes,
}

/// A message that is read in place.
#[derive(Debug)]
pub struct LentMessage<'a> {
    /// The message's bytes, decompressed if necessary.
    pub bytes: &'a [u8],
    incoming: &'a Incoming,
}

impl LentMessage<'_> {
    /// Fails the call: see [`Incoming::fail`].
    #[cold]
    pub fn fail(&self, status: Status) -> Status {
        self.incoming.fail(status)
    }
}

/// The source of the messages.
#[derive(Debug)]
enum Origin {
    Stream(Receiving),
    Local(LocalOrigin),
    Nowhere,
}

/// A local call, without a connection.
#[derive(Debug)]
struct LocalOrigin {
    requests: Arc<dyn LocalRequests>,
    /// The next message, if it is large: it is not copied to the buffer.
    large: Option<Bytes>,
}

/// Requests of a local call, without a connection.
pub(crate) trait LocalRequests: fmt::Debug + Send + Sync {
    /// Returns the next message, without prefix and uncompressed; `None` after the last.
    fn poll_request(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Status>>>;

    /// Discards the remaining requests: they will not be read.
    fn discard(&self);
}

impl Incoming {
    /// Creates a client's view. The compression is known once the headers have arrived.
    pub(crate) fn of_responses(
        connection: Arc<Connection>,
        key: SlotKey,
        message_size_max: usize,
        measure: CallMeasure,
        call: CallName,
    ) -> Self {
        let receiving = Receiving { connection, key, is_client: true };
        let origin = Origin::Stream(receiving);
        let mut incoming = Self::new(origin, message_size_max, Encoding::Identity, measure);
        incoming.call = Some(call);
        incoming
    }

    /// Creates a server's view.
    pub(crate) fn of_requests(
        connection: Arc<Connection>,
        key: SlotKey,
        message_size_max: usize,
        encoding: Encoding,
        measure: CallMeasure,
    ) -> Self {
        let origin = Origin::Stream(Receiving { connection, key, is_client: false });
        Self::new(origin, message_size_max, encoding, measure)
    }

    fn new(origin: Origin, message_size_max: usize, encoding: Encoding, measure: CallMeasure) -> Self {
        Self {
            origin,
            call: None,
            buffer: Vec::new(),
            position: 0,
            message_size_max,
            at_hand_len_max: message_size_max.min(codec::OWN_BUFFER_LEN_MIN - 1),
            encoding,
            measure,
            is_finished: AtomicBool::new(false),
            trailers: None,
            deadline: None,
            reader: DecompressionReader::default(),
            large_len: 0,
            lent: Bytes::new(),
        }
    }

    /// Creates a stream that has already ended, for API layers that get the messages from elsewhere.
    pub fn detached() -> Self {
        let detached = Self::new(Origin::Nowhere, 0, Encoding::Identity, CallMeasure::default());
        detached.is_finished.store(true, Relaxed);
        detached
    }

    /// Creates a server's view of a local call.
    pub(crate) fn of_local_requests(
        requests: Arc<dyn LocalRequests>,
        message_size_max: usize,
        measure: CallMeasure,
    ) -> Self {
        let origin = Origin::Local(LocalOrigin { requests, large: None });
        Self::new(origin, message_size_max, Encoding::Identity, measure)
    }

    /// Returns whether there are no more messages: the end or an error was returned.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.is_finished.load(Relaxed)
    }

    /// Takes the next message if it is in the buffer as a whole and needs no further work: not large, not compressed,
    /// and of a permitted size. After `None`, call [`poll_prefix`](Self::poll_prefix).
    ///
    /// This is the whole path of a small message, about 20 instructions. So it is inlined wherever messages are read.
    #[expect(clippy::inline_always, reason = "halves the cost of reading a small message")]
    #[inline(always)]
    pub fn next_at_hand(&mut self) -> Option<&[u8]> {
        if self.is_finished() {
            return None;
        }
        let unread = self.buffer.get(self.position..)?;
        let message = envelope::plain_message(unread, self.at_hand_len_max)?;
        self.position += PREFIX_LEN + message.len();
        self.measure.received_message(message.len(), false);
        Some(message)
    }

    /// Returns the prefix of the next message, if it is [available](Self::next_at_hand), to [lend](Self::lend) it.
    #[inline]
    pub fn prefix_at_hand(&self) -> Option<Prefix> {
        if self.is_finished() {
            return None;
        }
        let prefix = self.find_message().ok().flatten();
        prefix.filter(|prefix| !prefix.compressed && prefix.len <= self.at_hand_len_max)
    }

    /// Waits until the next message has arrived as a whole and returns its prefix, for [`take`](Self::take). Returns
    /// `None` after the last message.
    ///
    /// # Errors
    /// On a client: the call's status if it is not OK, UNAVAILABLE if the connection is lost, or DEADLINE_EXCEEDED. On
    /// a server: the call's cancellation. There are no more messages after an error.
    #[inline]
    pub fn poll_prefix(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Prefix, Status>>> {
        if self.is_finished() {
            return Poll::Ready(None);
        }
        let ended = loop {
            match self.find_message() {
                Ok(Some(prefix)) if prefix.compressed => return self.poll_decompression_turn(prefix, cx),
                Ok(Some(prefix)) => return Poll::Ready(Some(Ok(prefix))),
                Ok(None) => {}
                Err(error) => break Err(error.into()),
            }
            if let Origin::Local(_) = self.origin {
                return self.poll_local(cx);
            }
            match self.poll_arrived(cx) {
                Poll::Ready(Ok(Arrived::Bytes | Arrived::Truncated)) => {}
                Poll::Ready(Ok(Arrived::End(end))) => break self.in_time(end.outcome()),
                Poll::Ready(Err(error)) => break Err(error.into()),
                Poll::Pending => match self.poll_deadline(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(status) => break Err(status),
                },
            }
        };
        Poll::Ready(self.finish(ended).err().map(Err))
    }

    /// Like [`poll_prefix`](Self::poll_prefix), for local requests.
    #[cold]
    fn poll_local(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Prefix, Status>>> {
        let Origin::Local(local) = &mut self.origin else { return Poll::Ready(None) };
        let message = match &local.large {
            Some(large) => Ok(Some(large.clone())),
            None => ready!(local.requests.poll_request(cx)).transpose(),
        };
        let found = message.and_then(|message| {
            let Some(message) = message else { return Ok(None) };
            let prefix = envelope::permit(message.len(), self.message_size_max)?;
            if codec::keeps_buffer(prefix.len) {
                local.large = Some(message);
            } else {
                self.buffer.clear();
                self.position = 0;
                envelope::emit(&mut self.buffer, false, |out| out.extend_from_slice(&message))?;
            }
            Ok(Some(prefix))
        });
        let ended = match found {
            Ok(Some(prefix)) => return Poll::Ready(Some(Ok(prefix))),
            Ok(None) => Ok(HeaderMap::new()),
            Err(status) => Err(status),
        };
        Poll::Ready(self.finish(ended).err().map(Err))
    }

    #[cold]
    fn poll_decompression_turn(
        &mut self,
        prefix: Prefix,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Prefix, Status>>> {
        if let Origin::Stream(receiving) = &self.origin {
            ready!(receiving.connection.decompression.poll_turn(&mut self.reader, cx));
        }
        Poll::Ready(Some(Ok(prefix)))
    }

    /// Returns the prefix of the next message, if the message is in the buffer as a whole.
    #[inline]
    fn find_message(&self) -> Result<Option<Prefix>, EnvelopeError> {
        let unread = &self.buffer[self.position..];
        let prefix = Prefix::parse(unread, self.message_size_max)?;
        Ok(prefix.filter(|prefix| unread.len() >= prefix.envelope_len()))
    }

    /// Takes the message of the prefix that [`poll_prefix`](Self::poll_prefix) has just returned, decompressed if
    /// necessary.
    ///
    /// Inlined, as its callers should be: then the returned value is not copied through memory.
    ///
    /// # Errors
    /// The status to [`fail`](Self::fail) the call with, if the message can't be decompressed.
    #[inline]
    pub fn take(&mut self, prefix: Prefix) -> Result<Payload<'_>, Status> {
        self.measure.received_message(prefix.len, prefix.compressed);
        if prefix.compressed || codec::keeps_buffer(prefix.len) {
            return self.take_large_or_compressed(prefix);
        }
        let start = self.position + PREFIX_LEN;
        self.position += prefix.envelope_len();
        Ok(Payload::Borrowed(&self.buffer[start..self.position]))
    }

    /// Like [`take`](Self::take), but lends the message in place, until the next one is read.
    ///
    /// # Errors
    /// Returns the status if the message can't be decompressed. The call has [failed](Self::fail) then.
    #[inline]
    pub fn lend(&mut self, prefix: Prefix) -> Result<LentMessage<'_>, Status> {
        let start = self.position + PREFIX_LEN;
        match self.take(prefix) {
            Ok(Payload::Owned(bytes)) => Ok(self.lend_owned(bytes)),
            Ok(Payload::Borrowed(_)) => {
                Ok(LentMessage { bytes: &self.buffer[start..self.position], incoming: self })
            }
            Err(status) => Err(self.fail(status)),
        }
    }

    /// Lends a message that was received in another way.
    pub fn lend_owned(&mut self, bytes: Bytes) -> LentMessage<'_> {
        self.lent = bytes;
        LentMessage { bytes: &self.lent, incoming: self }
    }

    /// A large message that (almost) fills the buffer takes it over. The few bytes after it are copied.
    #[inline(never)]
    fn take_large_or_compressed(&mut self, prefix: Prefix) -> Result<Payload<'_>, Status> {
        if let Origin::Local(local) = &mut self.origin {
            return Ok(Payload::Owned(local.large.take().unwrap_or_default()));
        }
        let start = self.position;
        let end = start + prefix.envelope_len();
        let (encoding, size_max) = (self.encoding, self.message_size_max);
        let opened = if start == 0 && codec::keeps_buffer(prefix.len) && self.buffer.len() - end <= TAIL_MAX {
            let tail = self.buffer[end..].to_vec();
            let wire = std::mem::replace(&mut self.buffer, tail);
            codec::open_gathered(prefix, wire, encoding, size_max)
        } else {
            self.position = end;
            codec::open_borrowed(prefix, &self.buffer[start..end], encoding, size_max)
        };
        let len = opened.as_ref().ok().map(|payload| payload.as_bytes().len());
        self.large_len = len.unwrap_or_default();
        if prefix.compressed {
            if let Origin::Stream(receiving) = &self.origin {
                receiving.connection.decompression.note(&mut self.reader, len);
            }
            if let Some(len) = len {
                self.measure.decompressed(len, prefix.len);
            }
        }
        opened
    }

    /// Server: counts the message taken last as held by its handler until the call ends. Small messages don't count.
    pub fn count_taken(&self) {
        if let Origin::Stream(receiving) = &self.origin
            && self.large_len > 0
        {
            receiving.connection.add_request_bytes(receiving.key, self.large_len);
        }
    }

    /// Ends the call with `status` and notifies the peer: a message was not as expected.
    #[cold]
    pub fn fail(&self, status: Status) -> Status {
        let status = self.explain(status);
        if self.is_client() {
            self.measure.fail(&status);
        }
        self.is_finished.store(true, Relaxed);
        self.stop();
        status
    }

    /// Returns the trailing metadata, once the messages have ended.
    pub fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    #[inline]
    fn is_client(&self) -> bool {
        matches!(&self.origin, Origin::Stream(receiving) if receiving.is_client)
    }

    /// Takes the received bytes.
    fn poll_arrived(&mut self, cx: &Context<'_>) -> Poll<Result<Arrived, EnvelopeError>> {
        let tail = if self.position == self.buffer.len() {
            self.buffer.clear();
            Vec::new()
        } else {
            let mut tail = std::mem::take(&mut self.buffer);
            tail.drain(..self.position);
            tail
        };
        self.position = 0;
        match &self.origin {
            Origin::Stream(receiving) => {
                receiving.poll_arrived(ReadUnit::Messages, tail, &mut self.buffer, || None, cx)
            }
            Origin::Local(_) | Origin::Nowhere => Poll::Ready(Ok(Arrived::End(End::received()))),
        }
    }

    /// Client: waits for the response headers, or the end if there are none.
    pub(crate) fn poll_headers(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<ResponseHeaders>, End>> {
        let Origin::Stream(receiving) = &self.origin else { return Poll::Pending };
        let polled = receiving.poll_headers(cx);
        if let Poll::Ready(Ok(headers)) = &polled {
            self.encoding = headers.encoding;
        }
        polled
    }

    /// Client: sets the deadline of the stream.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
    }

    fn in_time(&self, outcome: Result<HeaderMap, Status>) -> Result<HeaderMap, Status> {
        match &self.deadline {
            None => outcome,
            Some(sleep) => outcome.map_err(|status| status::cancelled_by_deadline(status, sleep.deadline())),
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Status> {
        match &mut self.deadline {
            None => Poll::Pending,
            Some(sleep) => sleep.as_mut().poll(cx).map(|()| status::deadline_exceeded()),
        }
    }

    /// Also notifies the peer after a local error (a message too large or broken, the deadline). A client that has its
    /// response need not send the rest of its requests.
    #[cold]
    fn finish(&mut self, ended: Result<HeaderMap, Status>) -> Result<(), Status> {
        let trailers = ended.map_err(|status| self.fail(status))?;
        if self.is_client() {
            self.measure.end(Code::Ok);
        }
        self.is_finished.store(true, Relaxed);
        self.stop();
        self.trailers = Some(trailers);
        Ok(())
    }

    /// Client: adds the call to the text of a local error.
    #[cold]
    pub(crate) fn explain(&self, status: Status) -> Status {
        let (Some(call), Origin::Stream(receiving)) = (&self.call, &self.origin) else { return status };
        let is_late = status.is_local() && status.code() == Code::DeadlineExceeded;
        let status =
            if is_late { status::deadline_exceeded_at("the responses were not complete") } else { status };
        status.with_call_context(CallContext {
            path: &call.path,
            target: &receiving.connection.target(),
            peer: Some(&receiving.connection.peer),
            attempt: call.attempt,
            phase: (!is_late).then_some(Phase::Response),
        })
    }

    fn stop(&self) {
        match &self.origin {
            Origin::Stream(receiving) => receiving.stop(),
            Origin::Local(local) => local.requests.discard(),
            Origin::Nowhere => {}
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("origin", &self.origin)
            .field("buffered", &self.buffer.len())
            .finish_non_exhaustive()
    }
}
