//! Unary calls: the body is the message.

use http::Response;
use thalweg_engine::{Encoding, RequestHead, Status};

use super::answer::Answer;
use crate::body::Body;
use crate::compression::decompress;
use crate::service::deadline::Deadline;
use crate::service::response::ResponseFuture;

pub(super) fn call(answer: Answer, head: RequestHead, encoding: Encoding, body: Body) -> ResponseFuture {
    ResponseFuture::of(async move {
        let answered = run(&answer, head, encoding, body).await;
        answered.unwrap_or_else(|status| answer.answering(false).failure(&status).map(Body::whole))
    })
}

async fn run(
    answer: &Answer,
    head: RequestHead,
    encoding: Encoding,
    body: Body,
) -> Result<Response<Body>, Status> {
    let call = &answer.call;
    let size_max = call.method.options().max_decoding_message_size;
    let deadline = Deadline::after(head.timeout);
    let message = deadline.hold(body.gather(size_max)).await?;
    let message = call.read(decompress(encoding, message, size_max)?)?;
    let answered = call.unary(RequestHead { timeout: deadline.left(), ..head }, message).await?;
    let message = call.write(answered.message)?;
    let answering = answer.answering(false);
    Ok(answering.success(&answered.metadata, &answered.trailers, message).map(Body::whole))
}
