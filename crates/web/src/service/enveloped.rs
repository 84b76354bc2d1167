//! Calls with enveloped messages, in any protocol.

use bytes::Bytes;
use http::{HeaderMap, Response};
use thalweg_engine::raw::Trailers;
use thalweg_engine::{Encoding, RequestHead, Status, compact};

use super::call::MethodCall;
use super::requests::EnvelopedRequests;
use super::response::ResponseFuture;
use super::response_writer::ResponseWriter;
use super::streaming_body::{MessageWriter, StreamingBody};
use crate::body::Body;
use crate::deadline::Deadline;
use crate::envelope::EnvelopeReader;

pub(super) fn call<P: ResponseWriter>(
    call: MethodCall,
    head: RequestHead,
    body: Body,
    envelopes: EnvelopeReader,
    writer: P,
) -> ResponseFuture {
    if call.method.is_streaming() {
        stream(call, head, body, envelopes, writer)
    } else {
        ResponseFuture::from_future(async move {
            let response = unary(call, head, body, envelopes, &writer).await;
            response.unwrap_or_else(|status| writer.failure(&status))
        })
    }
}

async fn unary<P: ResponseWriter>(
    call: MethodCall,
    head: RequestHead,
    body: Body,
    envelopes: EnvelopeReader,
    writer: &P,
) -> Result<Response<Body>, Status> {
    let deadline = Deadline::after(head.timeout);
    let message = EnvelopedRequests::new(body, envelopes, call.clone()).single_message();
    let (message, accounting) = deadline.enforce("the request was not complete", message).await?;
    let response = call.unary(&RequestHead { timeout: deadline.remaining(), ..head }, message).await?;
    drop(accounting);
    let head = writer.head(&response.metadata)?;
    let message = call.write(response.message)?;
    let mut out = Vec::new();
    writer.message(&message, &mut out)?;
    let trailers = writer.end(Ok(&response.trailers), &mut out);
    let trailers = trailers.map_or(Trailers::None, |fields| Trailers::Fields(Box::new(fields)));
    Ok(head.map(|()| Body::with_trailers(compact(out), trailers)))
}

fn stream<P: ResponseWriter>(
    call: MethodCall,
    head: RequestHead,
    body: Body,
    envelopes: EnvelopeReader,
    writer: P,
) -> ResponseFuture {
    let requests = EnvelopedRequests::new(body, envelopes, call.clone());
    let mut stream = call.stream(head, requests);
    ResponseFuture::from_future(async move {
        let head = stream.headers().await.and_then(|metadata: HeaderMap| writer.head(&metadata));
        match head {
            Ok(head) => head.map(|()| {
                Body::streaming(StreamingBody::new(stream, Enveloped { call, writer }, Encoding::Identity))
            }),
            Err(status) => writer.failure(&status),
        }
    })
}

/// Writes messages in a protocol's envelopes.
struct Enveloped<P> {
    call: MethodCall,
    writer: P,
}

impl<P: ResponseWriter> MessageWriter for Enveloped<P> {
    fn put(&mut self, wire: Bytes, out: &mut Vec<u8>) -> Result<(), Status> {
        self.writer.message(&self.call.write(wire)?, out)
    }

    fn end(&mut self, outcome: Result<&HeaderMap, &Status>, out: &mut Vec<u8>) -> Option<HeaderMap> {
        self.writer.end(outcome, out)
    }
}
