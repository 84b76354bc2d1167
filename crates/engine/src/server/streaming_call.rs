//! A call with a stream of messages, as its handler sees it: requests in, responses out.

use std::future::poll_fn;
use std::sync::Arc;

use futures_core::Stream;
use http::HeaderMap;

use super::respond::{self, Answer, Reply};
use super::told::Told;
use crate::connection::{Connection, Incoming, SendLoop, SendOutcome, Slot};
use crate::encode::Encode;
use crate::grpc::compression::Encoding;
use crate::measure::CallMeasure;
use crate::status::Status;

/// A call that is not unary, while its handler runs. It is answered once; one that is dropped without an answer is
/// reset.
pub struct StreamingCall {
    connection: Arc<Connection>,
    reply: Reply,
    message_size_max: usize,
    encoding: Encoding,
    pub(super) measure: CallMeasure,
}

impl StreamingCall {
    pub(super) fn new(
        connection: Arc<Connection>,
        reply: Reply,
        message_size_max: usize,
        encoding: Encoding,
        measure: CallMeasure,
    ) -> Self {
        Self { connection, reply, message_size_max, encoding, measure }
    }

    /// Has the answer not be compressed, whatever the method's options say.
    pub fn disable_compression(&mut self) {
        self.reply.outgoing = self.reply.outgoing.uncompressed();
    }

    /// The requests; to be asked for once.
    pub fn requests(&self) -> Incoming {
        let connection = Arc::clone(&self.connection);
        let (key, measure) = (self.reply.key, self.measure.clone());
        Incoming::of_requests(connection, key, self.message_size_max, self.encoding, measure)
    }

    /// Answers with one message, or with a status.
    pub fn answer<M: Encode>(self, result: Result<Answer<'_, M>, Status>) {
        self.measure.answered(result.as_ref().map(|_| ()));
        let Some(trace) = self.measure.server_trace() else {
            return respond::answer(&self.connection, &self.reply, &result);
        };
        let told = result.map(|answer| answer.map(|message| Told::new(message, trace)));
        respond::answer(&self.connection, &self.reply, &told);
    }

    /// Answers with a status alone.
    pub fn fail(self, status: &Status) {
        self.measure.answered(Err(status));
        respond::fail(&self.connection, &self.reply, status);
    }

    /// Answers with a stream of messages, and returns when all of them are handed over. A message that is an error ends
    /// the call with that.
    pub async fn answer_stream<S, M>(self, metadata: &HeaderMap, messages: S, trailers: Option<HeaderMap>)
    where
        S: Stream<Item = Result<M, Status>> + Unpin,
        M: Encode,
    {
        if let Err(status) = self.send_head(metadata) {
            return self.fail(&status);
        }
        let Self { connection, reply, measure, .. } = self;
        let told = measure.clone();
        let mut sender =
            SendLoop::new(Arc::clone(&connection), reply.key, messages, reply.outgoing, false, measure);
        let outcome = poll_fn(|cx| sender.poll_send(cx)).await;
        match &outcome {
            SendOutcome::Done => told.answered(Ok(())),
            SendOutcome::Failed(status) => told.answered(Err(status)),
            SendOutcome::Gone => {}
        }
        let mut state = connection.lock();
        match outcome {
            SendOutcome::Done => respond::send_trailers(&mut state, &reply, Ok(trailers.as_ref())),
            SendOutcome::Failed(status) => respond::send_trailers(&mut state, &reply, Err(&status)),
            SendOutcome::Gone => {}
        }
        state.notify_driver();
    }

    /// The head is worth a packet of its own only if no message follows at once: the send loop notifies.
    fn send_head(&self, metadata: &HeaderMap) -> Result<(), Status> {
        let mut state = self.connection.lock();
        respond::send_head(&mut state, &self.reply, metadata)?;
        if let Some(call) = state.slot(self.reply.key).and_then(Slot::server) {
            call.head_sent = true;
        }
        Ok(())
    }
}
