//! Calls with enveloped messages, in any protocol.

use bytes::Bytes;
use http::{HeaderMap, Response};
use thalweg_engine::raw::Trailers;
use thalweg_engine::{Encoding, RequestHead, Status, compact};

use super::answers::{Answers, WriteMessages};
use super::call::Call;
use super::protocol::Protocol;
use super::requests::Requests;
use super::response::ResponseFuture;
use crate::body::Body;
use crate::deadline::Deadline;
use crate::envelope::Reader;

pub(super) fn call<P: Protocol>(
    call: Call,
    head: RequestHead,
    body: Body,
    envelopes: Reader,
    protocol: P,
) -> ResponseFuture {
    if call.method.is_streaming() {
        stream(call, head, body, envelopes, protocol)
    } else {
        ResponseFuture::of(async move {
            let answered = unary(call, head, body, envelopes, &protocol).await;
            answered.unwrap_or_else(|status| protocol.failure(&status))
        })
    }
}

async fn unary<P: Protocol>(
    call: Call,
    head: RequestHead,
    body: Body,
    envelopes: Reader,
    protocol: &P,
) -> Result<Response<Body>, Status> {
    let deadline = Deadline::after(head.timeout);
    let message = Requests::new(body, envelopes, call.clone()).only();
    let (message, share) = deadline.hold("the request was not complete", message).await?;
    let answer = call.unary(&RequestHead { timeout: deadline.left(), ..head }, message).await?;
    drop(share);
    let response = protocol.head(&answer.metadata)?;
    let message = call.write(answer.message)?;
    let mut out = Vec::new();
    protocol.message(&message, &mut out)?;
    let trailers = protocol.end(Ok(&answer.trailers), &mut out);
    let trailers = trailers.map_or(Trailers::None, |fields| Trailers::Fields(Box::new(fields)));
    Ok(response.map(|()| Body::with_trailers(compact(out), trailers)))
}

fn stream<P: Protocol>(
    call: Call,
    head: RequestHead,
    body: Body,
    envelopes: Reader,
    protocol: P,
) -> ResponseFuture {
    let requests = Requests::new(body, envelopes, call.clone());
    let mut stream = call.stream(head, requests);
    ResponseFuture::of(async move {
        let head = stream.head().await.and_then(|metadata: HeaderMap| protocol.head(&metadata));
        match head {
            Ok(head) => head.map(|()| {
                Body::streaming(Answers::new(stream, Enveloped { call, protocol }, Encoding::Identity))
            }),
            Err(status) => protocol.failure(&status),
        }
    })
}

/// Writes messages in a protocol's envelopes.
struct Enveloped<P> {
    call: Call,
    protocol: P,
}

impl<P: Protocol> WriteMessages for Enveloped<P> {
    fn put(&mut self, wire: Bytes, out: &mut Vec<u8>) -> Result<(), Status> {
        self.protocol.message(&self.call.write(wire)?, out)
    }

    fn end(&mut self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap> {
        self.protocol.end(outcome, out)
    }
}
