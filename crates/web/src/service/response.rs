//! What is to be answered: [`ResponseFuture`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Response};
use http_body::Body as _;

use super::unary::{self, Form, Unary};
use crate::body::Body;

/// An answer that is to come; errors are answers, too. Dropping it cancels the call.
#[must_use = "the call goes on where this is polled"]
pub struct ResponseFuture {
    answer: Answer,
    /// What every answer to this request has besides.
    added: Option<Box<HeaderMap>>,
    /// Whether HEAD asked.
    is_head: bool,
}

enum Answer {
    Ready(Box<Response<Body>>),
    Unary(Unary),
    Running(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
    Given,
}

impl ResponseFuture {
    /// An answer that is there.
    pub(crate) fn ready(answer: Response<impl Into<Body>>) -> Self {
        Self { answer: Answer::Ready(Box::new(answer.map(Into::into))), added: None, is_head: false }
    }

    /// That of a call whose message is in `body`.
    pub(super) fn unary(form: &Arc<dyn Form>, mut body: Body) -> Self {
        let (form, share) = (Arc::clone(form), body.share());
        if !share.is_some()
            && let Some((whole, _)) = body.take_whole()
        {
            return Self { answer: Answer::Unary(Unary::new(form, whole)), added: None, is_head: false };
        }
        Self::of(unary::gather(form, body, share))
    }

    /// One that comes of a future.
    pub(crate) fn of(answer: impl Future<Output = Response<Body>> + Send + 'static) -> Self {
        Self { answer: Answer::Running(Box::pin(answer)), added: None, is_head: false }
    }

    /// The same with these fields in its head.
    pub(crate) fn adding(self, fields: HeaderMap) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self { added: Some(Box::new(fields)), ..self }
    }

    /// The same to a request with this method of HTTP.
    pub(crate) fn answering(self, method: &Method) -> Self {
        Self { is_head: *method == Method::HEAD, ..self }
    }
}

impl Future for ResponseFuture {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let this = &mut *self;
        let mut answer = match &mut this.answer {
            Answer::Unary(call) => ready!(Pin::new(call).poll(cx)),
            Answer::Running(future) => ready!(future.as_mut().poll(cx)),
            Answer::Ready(_) => match std::mem::replace(&mut this.answer, Answer::Given) {
                Answer::Ready(answer) => *answer,
                _ => return Poll::Pending,
            },
            Answer::Given => return Poll::Pending,
        };
        this.answer = Answer::Given;
        if let Some(added) = this.added.take() {
            for (name, value) in added.iter() {
                // There is room: it is a handful.
                let _ = answer.headers_mut().try_append(name, value.clone());
            }
        }
        Poll::Ready(if this.is_head { without_body(answer) } else { answer })
    }
}

/// An answer to HEAD, whoever made it: it has no content (RFC 9110 §9.3.2).
fn without_body(answer: Response<Body>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    // That of the answer to GET (RFC 9110 §8.6). Whoever has left the body away has said how long it is, or nobody can.
    if let Some(len) = body.size_hint().exact().filter(|len| *len > 0) {
        head.headers.entry(CONTENT_LENGTH).or_insert(len.into());
    }
    Response::from_parts(head, Body::empty())
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
