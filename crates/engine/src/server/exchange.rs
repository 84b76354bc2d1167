//! A streaming call as seen by its handler: requests in, responses out. It arrives on a connection or from the same
//! process.

mod local;
mod local_responder;
mod local_response;

use std::future::poll_fn;
use std::sync::Arc;

use http::HeaderMap;

pub(super) use local::{LocalExchange, Next, RequestStream};
pub(super) use local_responder::{LocalResponder, outgoing};
pub use local_response::LocalResponse;
pub(super) use local_response::{LocalFuture, LocalOutcome, ending, failure};

use super::respond::{self, MessageResponse, ResponseTarget};
use super::traced_message::TracedMessage;
use crate::connection::{Connection, Incoming, SendLoop, SendOutcome, Slot, Source};
use crate::encode::Encode;
use crate::grpc::compression::Encoding;
use crate::measure::CallMeasure;
use crate::status::Status;

/// A streaming call during its handler, from a connection or [in-process](super::LocalCalls). It is answered once.
/// Dropping it without a response resets the call.
pub struct StreamingCall {
    way: Way,
    pub(super) measure: CallMeasure,
}

/// Transport of a call.
enum Way {
    Connection(Carried),
    Local(LocalResponder),
}

struct Carried {
    connection: Arc<Connection>,
    reply: ResponseTarget,
    message_size_max: usize,
    encoding: Encoding,
}

impl StreamingCall {
    pub(super) fn new(
        connection: Arc<Connection>,
        reply: ResponseTarget,
        message_size_max: usize,
        encoding: Encoding,
        measure: CallMeasure,
    ) -> Self {
        Self { way: Way::Connection(Carried { connection, reply, message_size_max, encoding }), measure }
    }

    /// Creates an in-process call.
    pub(super) fn local(reply: LocalResponder, measure: CallMeasure) -> Self {
        Self { way: Way::Local(reply), measure }
    }

    /// Disables compression of the response, overriding the method's options.
    pub fn disable_compression(&mut self) {
        match &mut self.way {
            Way::Connection(Carried { reply, .. }) => reply.outgoing = reply.outgoing.uncompressed(),
            // Never compressed.
            Way::Local(_) => {}
        }
    }

    /// Returns the requests. Call it once.
    pub fn requests(&self) -> Incoming {
        let measure = self.measure.clone();
        match &self.way {
            Way::Connection(Carried { connection, reply, message_size_max, encoding }) => {
                let connection = Arc::clone(connection);
                Incoming::of_requests(connection, reply.key, *message_size_max, *encoding, measure)
            }
            Way::Local(reply) => reply.requests(measure),
        }
    }

    /// Responds with one message or a status.
    pub fn answer<M: Encode>(self, result: Result<MessageResponse<'_, M>, Status>) {
        self.measure.answered(result.as_ref().map(|_| ()));
        let Some(trace) = self.measure.server_trace() else { return self.way.answer(result) };
        self.way.answer(result.map(|answer| answer.map(|message| TracedMessage::new(message, trace))));
    }

    /// Responds with a status only.
    pub fn fail(self, status: &Status) {
        self.measure.answered(Err(status));
        match &self.way {
            Way::Connection(Carried { connection, reply, .. }) => respond::fail(connection, reply, status),
            Way::Local(reply) => reply.fail(status),
        }
    }

    /// Responds with a stream of messages and returns when all are handed over. An error in the stream ends the call
    /// with that status.
    pub async fn answer_stream<S: Source>(
        self,
        metadata: &HeaderMap,
        messages: S,
        trailers: Option<HeaderMap>,
    ) {
        if let Err(status) = self.way.send_head(metadata) {
            return self.fail(&status);
        }
        let Self { way, measure } = self;
        let Carried { connection, reply, .. } = match way {
            Way::Connection(carried) => carried,
            Way::Local(reply) => return reply.send(messages, trailers, &measure).await,
        };
        let traced_message = measure.clone();
        let mut sender =
            SendLoop::new(Arc::clone(&connection), reply.key, messages, reply.outgoing, false, measure);
        let outcome = poll_fn(|cx| sender.poll_send(cx)).await;
        match &outcome {
            SendOutcome::Done => traced_message.answered(Ok(())),
            SendOutcome::Failed(status) => traced_message.answered(Err(status)),
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
}

impl Way {
    fn answer<M: Encode>(&self, result: Result<MessageResponse<'_, M>, Status>) {
        match self {
            Self::Connection(Carried { connection, reply, .. }) => {
                respond::answer(connection, reply, &result);
            }
            Self::Local(reply) => reply.answer(result),
        }
    }

    /// Does not notify the driver; the send loop does. Headers get a packet of their own only if no message follows at
    /// once.
    fn send_head(&self, metadata: &HeaderMap) -> Result<(), Status> {
        match self {
            Self::Connection(Carried { connection, reply, .. }) => {
                let mut state = connection.lock();
                respond::send_head(&mut state, reply, metadata)?;
                if let Some(call) = state.slot(reply.key).and_then(Slot::server) {
                    call.head_sent = true;
                }
                Ok(())
            }
            Self::Local(reply) => reply.put_head(metadata),
        }
    }
}
