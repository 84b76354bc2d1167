//! A streaming call as seen by its handler: requests in, responses out. It arrives on a connection or from the same
//! process.

mod late_trailers;
mod local;
mod local_responder;
mod local_response;

use std::future::poll_fn;
use std::sync::Arc;

use http::HeaderMap;

pub(super) use local::{LocalExchange, Next, RequestStream};
pub(super) use local_responder::{LocalResponder, outgoing};
pub use local_response::LocalResponse;
pub(super) use local_response::{LocalFuture, LocalOutcome, failure, received_outcome};

use self::late_trailers::with_late_trailers;
use super::respond::{self, MessageResponse, ResponseTarget};
use super::traced_message::TracedMessage;
use crate::connection::{Connection, Incoming, SendLoop, SendOutcome, Slot, Source};
use crate::encode::Encode;
use crate::grpc::compression::Encoding;
use crate::measure::CallMeasure;
use crate::status::Status;

/// A streaming call during its handler, from a connection or [in-process](super::LocalCalls). It gets one response.
/// Dropping it without a response resets the call.
pub struct StreamingCall {
    transport: CallTransport,
    pub(super) measure: CallMeasure,
}

/// Transport of a call.
enum CallTransport {
    Connection(ConnectionCall),
    Local(LocalResponder),
}

struct ConnectionCall {
    connection: Arc<Connection>,
    target: ResponseTarget,
    message_size_max: usize,
    encoding: Encoding,
}

impl StreamingCall {
    pub(super) fn new(
        connection: Arc<Connection>,
        target: ResponseTarget,
        message_size_max: usize,
        encoding: Encoding,
        measure: CallMeasure,
    ) -> Self {
        Self {
            transport: CallTransport::Connection(ConnectionCall {
                connection,
                target,
                message_size_max,
                encoding,
            }),
            measure,
        }
    }

    /// Creates an in-process call.
    pub(super) fn local(responder: LocalResponder, measure: CallMeasure) -> Self {
        Self { transport: CallTransport::Local(responder), measure }
    }

    /// Disables compression of the response, overriding the method's options.
    pub fn disable_compression(&mut self) {
        match &mut self.transport {
            CallTransport::Connection(ConnectionCall { target, .. }) => {
                target.outgoing = target.outgoing.uncompressed();
            }
            // Never compressed.
            CallTransport::Local(_) => {}
        }
    }

    /// Compresses the response with `encoding`, in place of the method's options. Messages of fewer than `threshold`
    /// bytes, and those that would grow, are sent uncompressed. Call it before the response starts, and only with an
    /// encoding that the client accepts ([`RequestHead::accepts`](crate::RequestHead::accepts)).
    pub fn compress(&mut self, encoding: Encoding, threshold: usize) {
        match &mut self.transport {
            CallTransport::Connection(ConnectionCall { target, .. }) => {
                target.outgoing = target.outgoing.compressed(encoding, threshold);
            }
            // Never compressed.
            CallTransport::Local(_) => {}
        }
    }

    /// Returns the requests. Call it once.
    pub fn requests(&self) -> Incoming {
        let measure = self.measure.clone();
        match &self.transport {
            CallTransport::Connection(ConnectionCall { connection, target, message_size_max, encoding }) => {
                let connection = Arc::clone(connection);
                Incoming::of_requests(connection, target.key, *message_size_max, *encoding, measure)
            }
            CallTransport::Local(responder) => responder.requests(measure),
        }
    }

    /// Responds with one message or a status.
    pub fn respond<M: Encode>(self, result: Result<MessageResponse<'_, M>, Status>) {
        self.measure.note_outcome(result.as_ref().map(|_| ()));
        let Some(trace) = self.measure.server_trace() else { return self.transport.respond(result) };
        self.transport
            .respond(result.map(|response| response.map(|message| TracedMessage::new(message, trace))));
    }

    /// Responds with a status only.
    pub fn fail(self, status: &Status) {
        self.measure.note_outcome(Err(status));
        match &self.transport {
            CallTransport::Connection(ConnectionCall { connection, target, .. }) => {
                respond::fail(connection, target, status);
            }
            CallTransport::Local(responder) => responder.fail(status),
        }
    }

    /// Responds with a stream of messages and returns when all are handed over. An error in the stream ends the call
    /// with that status.
    pub async fn respond_stream<S: Source>(
        self,
        metadata: &HeaderMap,
        messages: S,
        trailers: Option<HeaderMap>,
    ) {
        if let Err(status) = self.transport.send_headers(metadata) {
            return self.fail(&status);
        }
        let Self { transport, measure } = self;
        let ConnectionCall { connection, target, .. } = match transport {
            CallTransport::Connection(call) => call,
            CallTransport::Local(responder) => return responder.send(messages, trailers, &measure).await,
        };
        let outcome_measure = measure.clone();
        let mut sender =
            SendLoop::new(Arc::clone(&connection), target.key, messages, target.outgoing, false, measure);
        let outcome = match poll_fn(|cx| sender.poll_send(cx)).await {
            SendOutcome::Done => Ok(()),
            SendOutcome::Failed(status) => Err(status),
            SendOutcome::StreamClosed => return connection.lock().notify_driver(),
        };
        outcome_measure.note_outcome(outcome.as_ref().copied());
        let ended = with_late_trailers(outcome, trailers, sender.source().take_trailers());
        let mut state = connection.lock();
        respond::send_trailers(&mut state, &target, ended.as_ref().map(Option::as_ref));
        state.notify_driver();
    }
}

impl CallTransport {
    fn respond<M: Encode>(&self, result: Result<MessageResponse<'_, M>, Status>) {
        match self {
            Self::Connection(ConnectionCall { connection, target, .. }) => {
                respond::send(connection, target, &result);
            }
            Self::Local(responder) => responder.respond(result),
        }
    }

    /// Does not notify the driver; the send loop does. Headers get a packet of their own only if no message follows at
    /// once.
    fn send_headers(&self, metadata: &HeaderMap) -> Result<(), Status> {
        match self {
            Self::Connection(ConnectionCall { connection, target, .. }) => {
                let mut state = connection.lock();
                respond::send_headers(&mut state, target, metadata)?;
                if let Some(call) = state.slot(target.key).and_then(Slot::server) {
                    call.headers_sent = true;
                }
                Ok(())
            }
            Self::Local(responder) => responder.put_headers(metadata),
        }
    }
}
