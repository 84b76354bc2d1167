//! Calls made on behalf of another call: [`Parent`].

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_core::metadata::MetadataMap;
use thalweg_core::{Request, Response, Status};
use thalweg_engine::{CallOptions, Method, request_timeout};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use crate::caller::Caller;
use crate::deadline::Deadline;
use crate::message::Message;
use crate::streaming::{MessageSource, Streaming};

/// Passes the deadline of the call that a handler serves, and optionally its cancellation, to the calls that the
/// handler makes.
///
/// A call that the handler awaits, or whose stream it forwards, needs only the deadline. When the client cancels, the
/// handler is dropped, and the call with it. For calls in other tasks, use a [`guard`](Self::guard).
///
/// ```
/// # use thalweg::{Channel, Message, Method, Parent, Request, Response, Status};
/// # struct Front { backend: Channel }
/// # static GET: Method = Method::new("/a.Backend/Get");
/// # impl Front {
/// async fn get(&self, request: Request<String>) -> Result<Response<String>, Status> {
///     let parent = Parent::of(&request);
///     // With a generated client: BackendClient::new(parent.caller(&self.backend))
///     let backend = parent.caller(&self.backend);
///     # use thalweg::Caller;
///     backend.unary(&GET, Request::new(request.into_inner()), &backend.call_options()).await
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Parent {
    deadline: Option<Deadline>,
    ended: CancellationToken,
}

/// Ends the calls of a [`Parent`] with CANCELLED when dropped. Keep it in the handler or in its response stream, so
/// that their end or cancellation ends those calls.
#[derive(Debug)]
pub struct ParentGuard {
    _guard: DropGuard,
}

/// A caller whose calls are made on behalf of another call; see [`Parent::caller`].
#[derive(Clone, Debug)]
pub struct ChildCaller<C> {
    caller: C,
    parent: Parent,
}

impl Parent {
    /// Returns the parent for calls made on behalf of `request`.
    pub fn of<T>(request: &Request<T>) -> Self {
        Self::until(Deadline::of(request))
    }

    /// Creates a parent that is not a call and whose children have this deadline.
    pub fn until(deadline: Option<Deadline>) -> Self {
        Self { deadline, ended: CancellationToken::new() }
    }

    /// Returns the parent's deadline.
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Returns a guard that ends the children's calls when dropped.
    pub fn guard(&self) -> ParentGuard {
        ParentGuard { _guard: self.ended.clone().drop_guard() }
    }

    /// Returns a caller for the children's calls: each has the earlier of its own deadline and the parent's.
    pub fn caller<C: Caller>(&self, caller: &C) -> ChildCaller<C> {
        ChildCaller { caller: caller.clone(), parent: self.clone() }
    }

    /// Limits the request's timeout to the time left.
    fn limit_timeout<T>(&self, mut request: Request<T>, options: &CallOptions) -> Result<Request<T>, Status> {
        let Some(deadline) = self.deadline else { return Ok(request) };
        let remaining = deadline.check()?;
        let timeout = request_timeout(request.metadata().as_ref())?.or(options.timeout);
        request.set_timeout(timeout.map_or(remaining, |timeout| timeout.min(remaining)));
        Ok(request)
    }

    /// Returns the outcome of `call`, or CANCELLED if the parent ends first.
    async fn within<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(cancelled()),
            outcome = call => outcome,
        }
    }

    fn streaming<M: Message>(&self, response: Response<Streaming<M>>) -> Response<Streaming<M>> {
        response.map(|messages| {
            let ended = Box::pin(self.ended.clone().cancelled_owned());
            Streaming::from_source(ChildMessages { messages: Some(messages), ended })
        })
    }
}

fn cancelled() -> Status {
    Status::cancelled("the parent call has ended")
}

/// Messages of a call that is cancelled with its parent.
struct ChildMessages<M: Message> {
    messages: Option<Streaming<M>>,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<M: Message> MessageSource<M> for ChildMessages<M> {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<M, Status>>> {
        let Some(messages) = &mut self.messages else { return Poll::Ready(None) };
        match messages.poll_message(cx) {
            Poll::Pending => {}
            ready @ Poll::Ready(_) => return ready,
        }
        self.ended.as_mut().poll(cx).map(|()| {
            self.messages = None;
            Some(Err(cancelled()))
        })
    }

    fn take_trailers(&mut self) -> Option<MetadataMap> {
        self.messages.as_mut()?.take_trailers()
    }
}

impl<C: Caller> Caller for ChildCaller<C> {
    fn call_options(&self) -> CallOptions {
        self.caller.call_options()
    }

    async fn unary<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status> {
        let request = self.parent.limit_timeout(request, options)?;
        self.parent.within(self.caller.unary(method, request, options)).await
    }

    async fn client_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<Response<Res>, Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let request = self.parent.limit_timeout(request, options)?;
        self.parent.within(self.caller.client_streaming(method, request, options)).await
    }

    async fn server_streaming<Req: Message, Res: Message>(
        &self,
        method: &Method,
        request: Request<Req>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status> {
        let request = self.parent.limit_timeout(request, options)?;
        let response = self.parent.within(self.caller.server_streaming(method, request, options)).await?;
        Ok(self.parent.streaming(response))
    }

    async fn bidi_streaming<S, Res>(
        &self,
        method: &Method,
        request: Request<S>,
        options: &CallOptions,
    ) -> Result<Response<Streaming<Res>>, Status>
    where
        S: Stream + Send + 'static,
        S::Item: Message,
        Res: Message,
    {
        let request = self.parent.limit_timeout(request, options)?;
        let response = self.parent.within(self.caller.bidi_streaming(method, request, options)).await?;
        Ok(self.parent.streaming(response))
    }
}
