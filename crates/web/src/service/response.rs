//! Pending responses: [`ResponseFuture`].

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Response};
use http_body::Body as _;

use super::unary::{self, Unary, UnaryAdapter};
use crate::body::Body;

/// A pending response; errors are responses too. Dropping it cancels the call.
#[must_use = "the call only makes progress when polled"]
pub struct ResponseFuture {
    state: ResponseState,
    /// Headers added to the response.
    added_headers: Option<Box<HeaderMap>>,
    /// Whether the request method is HEAD.
    is_head: bool,
}

enum ResponseState {
    Ready(Box<Response<Body>>),
    Unary(Unary),
    Running(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
    Taken,
}

impl ResponseFuture {
    /// Returns a response that is ready.
    pub(crate) fn ready(response: Response<impl Into<Body>>) -> Self {
        Self {
            state: ResponseState::Ready(Box::new(response.map(Into::into))),
            added_headers: None,
            is_head: false,
        }
    }

    /// Returns the response of a unary call whose message is in `body`.
    pub(super) fn unary(adapter: &Arc<dyn UnaryAdapter>, mut body: Body) -> Self {
        let (adapter, accounting) = (Arc::clone(adapter), body.memory_accounting());
        if !accounting.is_some()
            && let Some((message, _)) = body.take_whole()
        {
            return Self {
                state: ResponseState::Unary(Unary::new(adapter, message)),
                added_headers: None,
                is_head: false,
            };
        }
        Self::from_future(unary::collect_and_call(adapter, body, accounting))
    }

    /// Returns the response of a future.
    pub(crate) fn from_future(response: impl Future<Output = Response<Body>> + Send + 'static) -> Self {
        Self { state: ResponseState::Running(Box::pin(response)), added_headers: None, is_head: false }
    }

    /// Adds these response headers.
    pub(crate) fn with_headers(self, fields: HeaderMap) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self { added_headers: Some(Box::new(fields)), ..self }
    }

    /// Sets the HTTP method of the request.
    pub(crate) fn for_method(self, method: &Method) -> Self {
        Self { is_head: *method == Method::HEAD, ..self }
    }
}

impl Future for ResponseFuture {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let this = &mut *self;
        let mut response = match &mut this.state {
            ResponseState::Unary(call) => ready!(Pin::new(call).poll(cx)),
            ResponseState::Running(future) => ready!(future.as_mut().poll(cx)),
            ResponseState::Ready(_) => match std::mem::replace(&mut this.state, ResponseState::Taken) {
                ResponseState::Ready(response) => *response,
                _ => return Poll::Pending,
            },
            ResponseState::Taken => return Poll::Pending,
        };
        this.state = ResponseState::Taken;
        if let Some(added_headers) = this.added_headers.take() {
            for (name, value) in added_headers.iter() {
                // The few fields fit.
                let _ = response.headers_mut().try_append(name, value.clone());
            }
        }
        Poll::Ready(if this.is_head { without_body(response) } else { response })
    }
}

/// Removes the content of a response to HEAD (RFC 9110 §9.3.2).
fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
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
