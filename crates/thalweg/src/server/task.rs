//! Calls that run as tasks of their own: all streaming ones, and unary ones that have to wait.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::time::{Instant, Sleep};
use tonic::{Response, Status};

use super::Trailers;
use super::dispatch::panicked;
use super::endpoint::{CANCELLED, Route};
use super::respond::{self, Reply};
use crate::connection::{Connection, End, Incoming, SendLoop, SendOutcome, keep_waker};
use crate::grpc::compression::Encoding;
use crate::measure::CallMeasure;
use crate::message::Message;
use crate::streaming::{Streaming, deadline_exceeded};

type CallFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs one call until it is answered, cancelled, or out of time.
///
/// When the client cancels, the handler's future is dropped where it stands.
pub(super) struct CallTask {
    connection: Arc<Connection>,
    reply: Reply,
    /// None once it has ended.
    future: Option<CallFuture>,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl CallTask {
    /// `running` is the handler's future, which was not ready at once, or was not polled yet.
    pub(super) fn unary<Fut, Res>(
        connection: &Arc<Connection>,
        reply: Reply,
        route: &Arc<Route>,
        mut running: Pin<Box<Option<Fut>>>,
    ) -> Self
    where
        Fut: Future<Output = Result<Response<Res>, Status>> + Send + 'static,
        Res: Message,
    {
        let shared = Arc::clone(connection);
        let handler = Arc::clone(route);
        let future = Box::pin(async move {
            let result = poll_fn(|cx| {
                let Some(future) = running.as_mut().as_pin_mut() else { return Poll::Pending };
                let mut clock = Instant::now();
                let polled = future.poll(cx);
                handler.method.pace.note(&mut clock);
                polled
            })
            .await;
            let mut state = shared.lock();
            respond::send_result(&mut state, &reply, &result);
            state.notify_driver();
        });
        Self::new(Arc::clone(connection), reply, route, Some(future))
    }

    /// `start` calls the handler, which may panic before it has a future.
    pub(super) fn streaming(
        connection: Arc<Connection>,
        reply: Reply,
        route: &Route,
        start: impl FnOnce() -> CallFuture,
    ) -> Self {
        let future = catch_unwind(AssertUnwindSafe(start)).ok();
        Self::new(connection, reply, route, future)
    }

    fn new(connection: Arc<Connection>, reply: Reply, route: &Route, future: Option<CallFuture>) -> Self {
        let deadline = route.head.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let deadline = deadline.map(|deadline| Box::pin(tokio::time::sleep_until(deadline)));
        let mut state = connection.lock();
        if let Some(slot) = state.slot(reply.key) {
            slot.task_running = true;
        }
        drop(state);
        Self { connection, reply, future, deadline }
    }

    /// Whether the client has given the call up; if not, the task is woken when it does.
    fn is_cancelled(&self, cx: &Context<'_>) -> bool {
        let mut state = self.connection.lock();
        match state.slot(self.reply.key) {
            None => true,
            Some(slot) if matches!(slot.end, Some(End::Lost { .. })) => true,
            Some(slot) => {
                keep_waker(&mut slot.task, cx.waker());
                false
            }
        }
    }

    fn poll_future(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let Some(future) = &mut self.future else { return Poll::Ready(Err(panicked())) };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Err(_) => Poll::Ready(Err(panicked())),
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Ok(Poll::Pending) => match &mut self.deadline {
                Some(deadline) => deadline.as_mut().poll(cx).map(|()| Err(deadline_exceeded())),
                None => Poll::Pending,
            },
        }
    }
}

impl Future for CallTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.is_cancelled(cx) {
            this.future = None;
            return Poll::Ready(());
        }
        match this.poll_future(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => {
                this.future = None;
                Poll::Ready(())
            }
            Poll::Ready(Err(status)) => {
                this.future = None;
                let mut state = this.connection.lock();
                respond::end_with(&mut state, &this.reply, &status);
                state.notify_driver();
                Poll::Ready(())
            }
        }
    }
}

impl Drop for CallTask {
    /// Whatever ended the task, the slot goes with it; a call without an answer is reset.
    fn drop(&mut self) {
        self.future = None;
        let mut state = self.connection.lock();
        let Some(slot) = state.remove(self.reply.key) else { return };
        if !matches!(slot.end, Some(End::Lost { .. })) {
            state.http2.reset(slot.stream, CANCELLED);
            state.notify_driver();
        }
    }
}

/// A streaming call, as its handler's wrapper sees it: requests in, responses out.
pub(super) struct StreamingCall {
    connection: Arc<Connection>,
    reply: Reply,
    message_size_max: usize,
    measure: CallMeasure,
}

impl StreamingCall {
    pub(super) fn new(
        connection: Arc<Connection>,
        reply: Reply,
        message_size_max: usize,
        measure: CallMeasure,
    ) -> Self {
        Self { connection, reply, message_size_max, measure }
    }

    pub(super) fn requests<Req: Message>(&self, encoding: Encoding) -> Streaming<Req> {
        let connection = Arc::clone(&self.connection);
        let (key, measure) = (self.reply.key, self.measure.clone());
        Streaming::of_requests(Incoming::new(connection, key, self.message_size_max, encoding, measure))
    }

    /// Answers with one message.
    pub(super) fn finish_unary<Res: Message>(self, result: &Result<Response<Res>, Status>) {
        let mut state = self.connection.lock();
        respond::send_result(&mut state, &self.reply, result);
        state.notify_driver();
    }

    /// Answers with a stream of messages, and returns when all of them are handed over.
    pub(super) async fn finish_stream<St, Res>(self, result: Result<Response<St>, Status>)
    where
        St: Stream<Item = Result<Res, Status>> + Send + 'static,
        Res: Message,
    {
        let head = result.and_then(|response| {
            let (metadata, messages, mut extensions) = response.into_parts();
            let mut state = self.connection.lock();
            respond::send_head(&mut state, &self.reply, &metadata)?;
            if let Some(slot) = state.slot(self.reply.key) {
                slot.head_sent = true;
            }
            // The head is worth a packet of its own only if no message follows at once: the send loop notifies.
            Ok((messages, extensions.remove::<Trailers>()))
        });
        let (messages, trailers) = match head {
            Ok(started) => started,
            Err(status) => {
                let mut state = self.connection.lock();
                respond::send_status(&mut state, &self.reply, &status);
                state.notify_driver();
                return;
            }
        };
        let connection = Arc::clone(&self.connection);
        let mut sender = SendLoop::new(
            connection,
            self.reply.key,
            Box::pin(messages),
            self.reply.outgoing,
            false,
            self.measure,
        );
        let outcome = poll_fn(|cx| sender.poll_send(cx)).await;
        let mut state = self.connection.lock();
        match outcome {
            SendOutcome::Done => respond::send_trailers(&mut state, &self.reply, Ok(trailers.as_ref())),
            SendOutcome::Failed(status) => respond::send_trailers(&mut state, &self.reply, Err(&status)),
            SendOutcome::Gone => {}
        }
        state.notify_driver();
    }
}
