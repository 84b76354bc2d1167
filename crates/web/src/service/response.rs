//! Pending responses: [`ResponseFuture`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Response};
use http_body::Body as _;

use super::unary::{self, Form, Unary};
use crate::body::Body;

/// A pending response; errors are responses too. Dropping it cancels the call.
#[must_use = "the call goes on where this is polled"]
pub struct ResponseFuture {
    answer: Answer,
    /// Headers added to the response.
    added: Option<Box<HeaderMap>>,
    /// Whether the request method is HEAD.
    is_head: bool,
}

enum Answer {
    Ready(Box<Response<Body>>),
    Unary(Unary),
    Running(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
    Given,
}

impl ResponseFuture {
    /// Returns a response that is ready.
    pub(crate) fn ready(answer: Response<impl Into<Body>>) -> Self {
        Self { answer: Answer::Ready(Box::new(answer.map(Into::into))), added: None, is_head: false }
    }

    /// Returns the response of a unary call whose message is in `body`.
    pub(super) fn unary(form: &Arc<dyn Form>, mut body: Body) -> Self {
        let (form, share) = (Arc::clone(form), body.share());
        if !share.is_some()
            && let Some((whole, _)) = body.take_whole()
        {
            return Self { answer: Answer::Unary(Unary::new(form, whole)), added: None, is_head: false };
        }
        Self::of(unary::gather(form, body, share))
    }

    /// Returns the response of a future.
    pub(crate) fn of(answer: impl Future<Output = Response<Body>> + Send + 'static) -> Self {
        Self { answer: Answer::Running(Box::pin(answer)), added: None, is_head: false }
    }

    /// Adds these response headers.
    pub(crate) fn adding(self, fields: HeaderMap) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self { added: Some(Box::new(fields)), ..self }
    }

    /// Sets the HTTP method of the request.
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
                // The few fields fit.
                let _ = answer.headers_mut().try_append(name, value.clone());
            }
        }
        Poll::Ready(if this.is_head { without_body(answer) } else { answer })
    }
}

/// Removes the content of a response to HEAD (RFC 9110 §9.3.2).
fn without_body(answer: Response<Body>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    // The length of the response to GET (RFC 9110 §8.6). An empty body has its length in the head, or it is unknown.
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
