//! Makes one call of any of the four kinds.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use thalweg::{Channel, Code, Request, Response, Status, Stream, Streaming};
use thalweg_measure::code::code_name;

use crate::bytes_form::Bytes;
use crate::call::{Call, CallKind, CallMetadata, Calls};
use crate::call_context::CallContext;
use crate::call_outcome::{CallOutcome, Failure};
use crate::form::Form;
use crate::stream::{Messages, Receiver, Rules, SendTimes, Sender};
use crate::template::TemplateValues;
use crate::traffic::Traffic;

/// Failure of a call whose request could not be built.
fn request_error(why: &str) -> Failure {
    Failure::Status(Status::invalid_argument(format!("failed to build the request: {why}")))
}

/// Status of a stream that ended with OK while still in use.
fn ended_early_status() -> Status {
    Status::data_loss("the server ended the stream early")
}

/// Makes a call other than those of [`unary`]. Stores values for later steps in the context's variables.
pub(crate) async fn perform(call: &Call, channel: &Channel, context: &mut CallContext<'_>) -> CallOutcome {
    match &call.calls {
        Calls::Bytes(requests) => Box::pin(stream(&Bytes { call, requests }, call, channel, context)).await,
        Calls::Benchmark(benchmark) => Box::pin(stream(benchmark, call, channel, context)).await,
        Calls::Echo(echo) => match Box::pin(echo.once(context.connects_per_call)).await {
            Ok(stages) => CallOutcome { stages: stages.map(Box::new), ..CallOutcome::default() },
            Err(status) => CallOutcome::failed(Failure::Status(status)),
        },
    }
}

/// Cancels a call that is still in flight at `cut_at`.
async fn cancel_at<T>(
    cut_at: Option<Instant>,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match cut_at {
        None => call.await,
        Some(at) => tokio::time::timeout_at(at.into(), call)
            .await
            .unwrap_or_else(|_| Err(Status::cancelled("still running when the measurement ended"))),
    }
}

/// Puts the call's metadata into the request, without a copy if there is none.
fn put_metadata<T>(call: &Call, request: &mut Request<T>, context: &CallContext<'_>) -> Result<(), Failure> {
    match &call.metadata {
        CallMetadata::Constant(metadata) if metadata.is_empty() => {}
        CallMetadata::Constant(metadata) => *request.metadata_mut() = metadata.clone(),
        CallMetadata::Made(make) => {
            let values = TemplateValues {
                request: context.number,
                worker: context.worker as u64,
                variables: Some(context.variables()),
                ..TemplateValues::default()
            };
            *request.metadata_mut() = make(&values).map_err(|why| request_error(&why))?;
        }
    }
    Ok(())
}

/// Checks the outcome of a call against the expected status.
fn check_status(call: &Call, ended: Result<(), Status>) -> Result<(), Failure> {
    let expected = call.expects.status;
    match ended {
        Ok(()) if expected == Code::Ok => Ok(()),
        Ok(()) => Err(Failure::Check(format!("expected status {}, got OK", code_name(expected as i32)))),
        Err(status) if status.code() == expected && expected != Code::Ok => Ok(()),
        Err(status) => Err(Failure::Status(status)),
    }
}

/// Makes a unary call. Stores values for later steps in the context's variables.
///
/// Futures are moved when awaited, so there are few between this one and the channel's, and rare ones are boxed.
pub(crate) async fn unary<F: Form>(
    form: &F,
    call: &Call,
    channel: &Channel,
    context: &mut CallContext<'_>,
) -> CallOutcome {
    let message = match form.request(context) {
        Ok(message) => message,
        Err(why) => return CallOutcome::failed(request_error(&why)),
    };
    let sent = Traffic::sent(1, form.request_bytes(&message));
    let mut request = Request::new(message);
    if let Err(failure) = put_metadata(call, &mut request, context) {
        return CallOutcome::failed(failure);
    }
    let response =
        channel.unary::<F::Request, F::Response>(&call.method, request, context.options(&call.options));
    // Passed by reference, since moving a large response is expensive.
    match context.cut_at {
        None => unary_outcome(form, call, context, sent, &response.await),
        Some(_) => {
            unary_outcome(form, call, context, sent, &Box::pin(cancel_at(context.cut_at, response)).await)
        }
    }
}

#[inline]
fn unary_outcome<F: Form>(
    form: &F,
    call: &Call,
    context: &mut CallContext<'_>,
    sent: Traffic,
    result: &Result<Response<F::Response>, Status>,
) -> CallOutcome {
    let mut traffic = sent;
    let failure = match result {
        Ok(response) => {
            let response = response.get_ref();
            traffic += Traffic::received(1, F::response_bytes(response));
            check_status(call, Ok(())).and_then(|()| form.check(response, context)).err()
        }
        Err(status) => check_status(call, Err(status.clone())).err(),
    };
    CallOutcome { traffic, failure, ..CallOutcome::default() }
}

async fn stream<F: Form>(
    form: &F,
    call: &Call,
    channel: &Channel,
    context: &mut CallContext<'_>,
) -> CallOutcome {
    let plan = &call.stream;
    let is_paired = call.kind == CallKind::BidiStream;
    let rules = Rules {
        is_paired,
        outstanding: plan.outstanding.filter(|_| is_paired),
        lasts_to_end: plan.lasts_to_end,
        counts_at_response: plan.counts_at_response && call.kind == CallKind::ClientStream,
    };
    let messages = &Arc::new(Messages::new(context.counters, &context.counted, rules));
    let ends_ns = match plan.lasts {
        Some(lasts) => messages.began_ns.saturating_add(lasts.as_nanos() as u64),
        None if plan.lasts_to_end => context.until_ns,
        None => u64::MAX,
    };
    if plan.lasts_to_end && messages.began_ns >= ends_ns {
        return CallOutcome::default();
    }
    let mut exchange = Exchange {
        form,
        call,
        channel,
        messages,
        receiver: Receiver::new(messages, call.kind == CallKind::ServerStream),
        check: Ok(()),
        is_cut: false,
        ends_ns,
    };
    let ended = match call.kind {
        CallKind::ServerStream => exchange.receive_only(context).await,
        CallKind::ClientStream => exchange.send_only(context).await,
        _ => exchange.both_ways(context).await,
    };
    let ended = match ended {
        Ok(Ok(())) if plan.lasts_to_end && exchange.check.is_ok() && !exchange.is_complete() => {
            Err(ended_early_status())
        }
        Ok(ended) => ended,
        Err(failure) => return CallOutcome::failed(failure),
    };
    let message_count =
        if call.kind == CallKind::ServerStream { exchange.receiver.total } else { messages.sent() };
    let is_ok = ended.is_ok() && exchange.check.is_ok();
    if is_ok {
        messages.count_deferred();
    }
    let failure = check_status(call, ended).and(exchange.check).err();
    let failure = messages.fault().map(request_error).or(failure);
    CallOutcome { failure, has_traffic: message_count > 0, ..CallOutcome::default() }
}

/// A stream in progress.
struct Exchange<'c, F: Form> {
    form: &'c F,
    call: &'c Call,
    channel: &'c Channel,
    messages: &'c Arc<Messages>,
    receiver: Receiver<'c>,
    /// Failed check of the first unexpected response.
    check: Result<(), Failure>,
    /// Whether the client has ended it.
    is_cut: bool,
    ends_ns: u64,
}

/// Outcome of a stream, if it was started.
type StreamResult = Result<Result<(), Status>, Failure>;

impl<F: Form> Exchange<'_, F> {
    /// Returns whether a stream that lasts to the end of the run was ended by it, with no message missing.
    fn is_complete(&self) -> bool {
        match self.call.kind {
            CallKind::ServerStream => self.is_cut,
            CallKind::BidiStream => {
                self.messages.is_complete() && self.messages.sent() == self.receiver.total
            }
            _ => self.messages.is_complete(),
        }
    }

    fn sender(&self, context: &CallContext<'_>) -> Sender<F::Source> {
        let times = self.call.stream.message_rate.clone().map(SendTimes::new);
        let is_paced = self.call.kind == CallKind::ClientStream;
        Sender::new(self.form.requests(context), self.messages, self.ends_ns, times, is_paced)
    }

    fn request<T>(&self, message: T, context: &CallContext<'_>) -> Result<Request<T>, Failure> {
        let mut request = Request::new(message);
        put_metadata(self.call, &mut request, context)?;
        Ok(request)
    }

    async fn send_only(&mut self, context: &mut CallContext<'_>) -> StreamResult {
        let (method, options) = (&self.call.method, context.options(&self.call.options));
        let (channel, sender, cut_at) = (self.channel, self.sender(context), context.cut_at);
        let response = if self.form.is_owned() {
            let request = self.request(sender, context)?;
            cancel_at(cut_at, channel.client_streaming::<_, F::Response>(method, request, options)).await
        } else {
            let request = self.request(sender.in_place(), context)?;
            cancel_at(cut_at, channel.client_streaming::<_, F::Response>(method, request, options)).await
        };
        match &response {
            Ok(response) => {
                self.take(response.get_ref(), context);
                Ok(Ok(()))
            }
            Err(status) => Ok(Err(status.clone())),
        }
    }

    async fn receive_only(&mut self, context: &mut CallContext<'_>) -> StreamResult {
        let message = self.form.request(context).map_err(|why| request_error(&why))?;
        self.messages.count_only_request(self.form.request_bytes(&message));
        let request = self.request(message, context)?;
        let (channel, cut_at, ends_ns) = (self.channel, context.cut_at, self.ends_ns);
        let base = self.messages.base();
        let received = async {
            let (method, options) = (&self.call.method, context.options(&self.call.options));
            let responses = channel.server_streaming::<F::Request, F::Response>(method, request, options);
            self.receive(responses.await?.into_inner(), context).await
        };
        let received = cancel_at(cut_at, received);
        if ends_ns == u64::MAX {
            return Ok(received.await);
        }
        let ended = tokio::time::timeout_at((base + Duration::from_nanos(ends_ns)).into(), received).await;
        // The stream's time is up: dropping it cancels it.
        self.is_cut |= ended.is_err();
        Ok(ended.unwrap_or(Ok(())))
    }

    async fn both_ways(&mut self, context: &mut CallContext<'_>) -> StreamResult {
        let (method, options) = (&self.call.method, context.options(&self.call.options));
        let (channel, sender, cut_at) = (self.channel, self.sender(context), context.cut_at);
        if self.form.is_owned() {
            let request = self.request(sender, context)?;
            let responses = channel.bidi_streaming::<_, F::Response>(method, request, options);
            return Ok(cancel_at(cut_at, async {
                self.receive(responses.await?.into_inner(), context).await
            })
            .await);
        }
        let request = self.request(sender.in_place(), context)?;
        let responses = channel.bidi_streaming::<_, F::Response>(method, request, options);
        Ok(cancel_at(cut_at, async { self.receive(responses.await?.into_inner(), context).await }).await)
    }

    /// Receives all responses, or as many as wanted.
    async fn receive(
        &mut self,
        mut responses: Streaming<F::Response>,
        context: &mut CallContext<'_>,
    ) -> Result<(), Status> {
        let mut message = F::Response::default();
        let wanted = self.call.stream.responses.unwrap_or(u64::MAX);
        while self.receiver.wants_more() {
            let can_continue = if self.form.is_owned() {
                let mut responses = pin!(&mut responses);
                // `?` would move the message.
                match &poll_fn(|cx| self.count_if_pending(responses.as_mut().poll_next(cx))).await {
                    Some(Ok(message)) => self.take(message, context),
                    Some(Err(status)) => return Err(status.clone()),
                    None => return Ok(()),
                }
            } else {
                let next = poll_fn(|cx| self.count_if_pending(responses.poll_message_into(cx, &mut message)));
                if !next.await? {
                    return Ok(());
                }
                self.take(&message, context)
            };
            if !can_continue {
                return Ok(());
            }
            if self.receiver.total >= wanted {
                break;
            }
        }
        self.is_cut = true;
        Ok(())
    }

    /// Counts the received messages before waiting for more.
    #[inline]
    fn count_if_pending<T>(&mut self, polled: Poll<T>) -> Poll<T> {
        if polled.is_pending() {
            self.receiver.count();
        }
        Poll::Ready(ready!(polled))
    }

    /// Counts a response, and checks it if all earlier ones were as expected. Returns false if the stream cannot go on.
    #[inline]
    fn take(&mut self, message: &F::Response, context: &mut CallContext<'_>) -> bool {
        if self.check.is_ok() {
            self.check = self.form.check(message, context);
            if let Err(Failure::Status(_)) = self.check {
                return false;
            }
        }
        self.receiver.push(F::response_bytes(message));
        true
    }
}
