//! Messages that both ends can create and check.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use thalweg::Raw;
use tokio::time::Sleep;

use super::plan::CallPlan;
use crate::http2::Side;
use crate::pattern;

/// The message with this index from `sender` in a call.
pub(super) fn message(plan: &CallPlan, sender: Side, index: usize) -> Raw {
    let sizes = match sender {
        Side::Client => &plan.requests,
        Side::Server => &plan.responses,
    };
    let body = plan.seed ^ (u64::from(sender) << 40) ^ ((index as u64) << 32);
    Raw(pattern::slice_of(body, 0, sizes[index]))
}

/// Checks that this is the message with this index from `sender`.
pub(super) fn check(plan: &CallPlan, sender: Side, index: usize, received: &Raw) -> Result<(), String> {
    let count = match sender {
        Side::Client => plan.requests.len(),
        Side::Server => plan.responses.len(),
    };
    if index >= count {
        return Err(format!("message {index} of {sender:?}, which sent only {count}"));
    }
    let expected = message(plan, sender, index);
    if *received != expected {
        let (received, expected) = (received.0.len(), expected.0.len());
        return Err(format!("message {index} of {sender:?} differs; {received} bytes, {expected} expected"));
    }
    Ok(())
}

/// The requests of a call, with pauses.
pub(super) struct Requests {
    plan: CallPlan,
    next: usize,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Requests {
    pub(super) fn new(plan: &CallPlan) -> Requests {
        Requests { plan: plan.clone(), next: 0, pause: None }
    }
}

impl Stream for Requests {
    type Item = Raw;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        let index = self.next;
        if index == self.plan.requests.len() {
            return Poll::Ready(None);
        }
        if self.plan.request_pause > Duration::ZERO {
            let pause = self.plan.request_pause;
            let sleep = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
            ready!(sleep.as_mut().poll(cx));
            self.pause = None;
        }
        self.next += 1;
        Poll::Ready(Some(message(&self.plan, Side::Client, index)))
    }
}
