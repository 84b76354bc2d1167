//! Tasks deferred until a connection's lock is released, because they may run user code: wake-ups, instruments, and
//! drops of replaced wakers.

use std::task::{Context, Waker};

use crate::measure::CallMeasure;
use crate::status::Code;

/// Tasks to run once the lock is released, in this order.
#[derive(Debug, Default)]
pub(crate) struct Deferred(Vec<DeferredTask>);

#[derive(Debug)]
enum DeferredTask {
    Wake(Waker),
    Count(CallMeasure),
    /// Without a code, this holder of the measure has nothing more to record.
    End(CallMeasure, Option<Code>),
}

impl Deferred {
    /// Wakes `waker`, if any.
    #[inline]
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.0.push(DeferredTask::Wake(waker));
        }
    }

    /// Counts a call that has arrived.
    #[inline]
    pub(crate) fn count(&mut self, measure: &CallMeasure) {
        if measure.is_some() {
            self.0.push(DeferredTask::Count(measure.clone()));
        }
    }

    /// Ends a call's measurement with this code; drops it without one.
    #[inline]
    pub(crate) fn end(&mut self, measure: CallMeasure, code: Option<Code>) {
        if measure.is_some() {
            self.0.push(DeferredTask::End(measure, code));
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all tasks. The last is returned separately, so that a single task allocates no memory.
    pub(super) fn take(&mut self) -> (Self, LastTask) {
        let last = LastTask(self.0.pop());
        let others = if self.0.is_empty() { Vec::new() } else { std::mem::take(&mut self.0) };
        (Self(others), last)
    }

    /// Runs all tasks, without the lock, and keeps the capacity. Returns whether a task was woken.
    pub(super) fn run(&mut self) -> bool {
        let mut has_woken = false;
        for task in self.0.drain(..) {
            has_woken |= matches!(task, DeferredTask::Wake(_));
            task.run();
        }
        has_woken
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// The last [deferred](Deferred::take) task.
pub(super) struct LastTask(Option<DeferredTask>);

impl LastTask {
    pub(super) fn run(self) {
        if let Some(task) = self.0 {
            task.run();
        }
    }
}

impl DeferredTask {
    #[inline]
    fn run(self) {
        match self {
            Self::Wake(waker) => waker.wake(),
            Self::Count(measure) => measure.count(),
            Self::End(measure, code) => {
                if let Some(code) = code {
                    measure.end(code);
                }
            }
        }
    }
}

/// The task that is being polled. Its waker is cloned, and the waker that it replaces is dropped, outside the lock.
pub(crate) struct PolledTask<'a> {
    waker: &'a Waker,
    /// A clone to store; afterwards the waker that it replaced.
    cloned: Option<Waker>,
}

/// Error: a clone of the waker is needed, so the lock has to be released first.
#[derive(Debug)]
pub(crate) struct NeedsClone;

impl PolledTask<'_> {
    /// Stores the task's waker in `stored`.
    ///
    /// # Errors
    /// [`NeedsClone`] if that needs a clone that has not been made yet.
    #[inline]
    pub(crate) fn store_waker_in(&mut self, stored: &mut Option<Waker>) -> Result<(), NeedsClone> {
        if stored.as_ref().is_some_and(|stored| stored.will_wake(self.waker)) {
            return Ok(());
        }
        if self.cloned.is_none() {
            return Err(NeedsClone);
        }
        std::mem::swap(stored, &mut self.cloned);
        Ok(())
    }
}

/// Runs `poll`, which takes and releases a lock. Runs it again with a clone of the waker if it needed one.
#[inline]
pub(crate) fn poll_with_waker<T>(
    cx: &Context<'_>,
    mut poll: impl FnMut(&mut PolledTask<'_>) -> Result<T, NeedsClone>,
) -> T {
    let mut task = PolledTask { waker: cx.waker(), cloned: None };
    loop {
        match poll(&mut task) {
            Ok(outcome) => return outcome,
            Err(NeedsClone) => task.cloned = Some(cx.waker().clone()),
        }
    }
}
