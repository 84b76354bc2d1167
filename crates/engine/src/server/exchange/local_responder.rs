//! Handler's side of an in-process streaming call: [`LocalResponder`].

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use http::HeaderMap;

use super::late_trailers::with_late_trailers;
use super::local::LocalExchange;
use super::local_response::{self as response, LocalResponse};
use crate::connection::{Incoming, Outgoing, Source};
use crate::encode::Encode;
use crate::grpc::compression::Encoding;
use crate::measure::CallMeasure;
use crate::options::ServiceOptions;
use crate::server::respond::MessageResponse;
use crate::status::Status;

pub(in crate::server) struct LocalResponder {
    exchange: Arc<LocalExchange>,
    outgoing: Outgoing,
    message_size_max: usize,
}

impl LocalResponder {
    pub(in crate::server) fn new(exchange: Arc<LocalExchange>, options: &ServiceOptions) -> Self {
        Self { exchange, outgoing: outgoing(options), message_size_max: options.max_decoding_message_size }
    }

    pub(in crate::server) fn requests(&self, measure: CallMeasure) -> Incoming {
        Incoming::of_local_requests(Arc::clone(&self.exchange) as _, self.message_size_max, measure)
    }

    pub(in crate::server) fn respond<M: Encode>(&self, result: Result<MessageResponse<'_, M>, Status>) {
        match LocalResponse::of(result, &self.outgoing) {
            Ok(response) => self.exchange.respond(response),
            Err(outcome) => self.exchange.end(outcome),
        }
    }

    pub(in crate::server) fn fail(&self, status: &Status) {
        self.exchange.end(response::received_outcome(Err(status)));
    }

    pub(in crate::server) fn put_headers(&self, metadata: &HeaderMap) -> Result<(), Status> {
        self.exchange.put_headers(response::received_headers(metadata)?);
        Ok(())
    }

    /// Sends all messages and the trailers, and reports them to `measure`.
    pub(in crate::server) async fn send<S: Source>(
        &self,
        mut messages: S,
        trailers: Option<HeaderMap>,
        measure: &CallMeasure,
    ) {
        let Some(sent) = poll_fn(|cx| self.poll_send(&mut messages, measure, cx)).await else { return };
        measure.note_outcome(sent.as_ref().copied());
        let ended = with_late_trailers(sent, trailers, messages.take_trailers());
        self.exchange.end(response::received_outcome(ended.as_ref().map(Option::as_ref)));
    }

    /// Completes when all messages are handed over, with `None` if the call has ended.
    fn poll_send<S, M>(
        &self,
        messages: &mut S,
        measure: &CallMeasure,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(), Status>>>
    where
        S: Stream<Item = Result<M, Status>> + Unpin,
        M: Encode,
    {
        while ready!(self.exchange.poll_room(cx)) {
            let encoded = match ready!(Pin::new(&mut *messages).poll_next(cx)) {
                None => return Poll::Ready(Some(Ok(()))),
                Some(Err(status)) => return Poll::Ready(Some(Err(status))),
                Some(Ok(message)) => response::encode(&message, &self.outgoing).inspect(|encoded| {
                    measure.sent_message(encoded.len(), || message.encoded_len());
                }),
            };
            match encoded {
                Ok(message) => self.exchange.put_message(message),
                Err(status) => return Poll::Ready(Some(Err(status))),
            }
        }
        Poll::Ready(None)
    }
}

/// Returns the encoding settings of responses, without compression.
pub(in crate::server) fn outgoing(options: &ServiceOptions) -> Outgoing {
    Outgoing::new(options.max_encoding_message_size, Encoding::Identity, 0)
}
