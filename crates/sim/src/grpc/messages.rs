//! Messages that both ends can create and check.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use thalweg::Raw;
use tokio::time::Sleep;

use super::plan::CallPlan;
use super::who::Who;
use crate::pattern;

/// The message with this index from `speaker` in a call.
pub(super) fn message(plan: &CallPlan, speaker: Who, index: usize) -> Raw {
    let sizes = match speaker {
        Who::Client => &plan.requests,
        Who::Server => &plan.responses,
    };
    let body = plan.seed ^ (u64::from(speaker) << 40) ^ ((index as u64) << 32);
    Raw(pattern::stretch(body, 0, sizes[index]))
}

/// Checks that this is the message with this index from `speaker`.
pub(super) fn check(plan: &CallPlan, speaker: Who, index: usize, heard: &Raw) -> Result<(), String> {
    let said = match speaker {
        Who::Client => plan.requests.len(),
        Who::Server => plan.responses.len(),
    };
    if index >= said {
        return Err(format!("message {index} of {speaker:?}, who only said {said}"));
    }
    let expected = message(plan, speaker, index);
    if *heard != expected {
        let (heard, expected) = (heard.0.len(), expected.0.len());
        return Err(format!("message {index} of {speaker:?} differs; {heard} bytes, {expected} expected"));
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
        Poll::Ready(Some(message(&self.plan, Who::Client, index)))
    }
}
