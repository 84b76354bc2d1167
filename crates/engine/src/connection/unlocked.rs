//! What is put off until a connection's lock has been given back, since it may run code of the user's: wake-ups,
//! instruments, and the drop of a waker that another takes the place of.

use std::task::{Context, Waker};

use crate::measure::CallMeasure;
use crate::status::Code;

/// What is to be done once the lock has been given back, in this order.
#[derive(Debug, Default)]
pub(crate) struct Deferred(Vec<Task>);

#[derive(Debug)]
enum Task {
    Wake(Waker),
    Count(CallMeasure),
    /// Without a code, this holder of the measure has nothing more to say of the call.
    End(CallMeasure, Option<Code>),
}

impl Deferred {
    /// Wakes `waker`, if there is one.
    #[inline]
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.0.push(Task::Wake(waker));
        }
    }

    /// Counts a call that has come.
    #[inline]
    pub(crate) fn count(&mut self, measure: &CallMeasure) {
        if measure.is_some() {
            self.0.push(Task::Count(measure.clone()));
        }
    }

    /// Ends what is measured of a call with this code; without one, drops it.
    #[inline]
    pub(crate) fn end(&mut self, measure: CallMeasure, code: Option<Code>) {
        if measure.is_some() {
            self.0.push(Task::End(measure, code));
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the only task there is, without memory of its own, or all of them.
    pub(super) fn take(&mut self) -> (Self, LastTask) {
        let last = LastTask(self.0.pop());
        let others = if self.0.is_empty() { Vec::new() } else { std::mem::take(&mut self.0) };
        (Self(others), last)
    }

    /// Does it all, without the lock. Keeps its memory. Whether somebody was woken.
    pub(super) fn run(&mut self) -> bool {
        let mut has_woken = false;
        for task in self.0.drain(..) {
            has_woken |= matches!(task, Task::Wake(_));
            task.run();
        }
        has_woken
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// The last of what is [deferred](Deferred::take).
pub(super) struct LastTask(Option<Task>);

impl LastTask {
    pub(super) fn run(self) {
        if let Some(task) = self.0 {
            task.run();
        }
    }
}

impl Task {
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

/// The task that is being polled, for who may have to wake it. Its waker is cloned, and the waker that it takes the
/// place of is dropped, without the lock.
pub(crate) struct Sleeper<'a> {
    waker: &'a Waker,
    /// A clone to give away; later what it took the place of.
    spare: Option<Waker>,
}

/// A clone of the waker is wanted: the lock has to be given back for it.
#[derive(Debug)]
pub(crate) struct NeedsClone;

impl Sleeper<'_> {
    /// Has `kept` wake the task.
    ///
    /// # Errors
    /// When that takes a clone that has not been made.
    #[inline]
    pub(crate) fn keep_in(&mut self, kept: &mut Option<Waker>) -> Result<(), NeedsClone> {
        if kept.as_ref().is_some_and(|kept| kept.will_wake(self.waker)) {
            return Ok(());
        }
        if self.spare.is_none() {
            return Err(NeedsClone);
        }
        std::mem::swap(kept, &mut self.spare);
        Ok(())
    }
}

/// Takes a look under a lock that `look` takes and gives back, and takes it again if that had no clone of the waker to
/// keep.
#[inline]
pub(crate) fn look<T>(
    cx: &Context<'_>,
    mut look: impl FnMut(&mut Sleeper<'_>) -> Result<T, NeedsClone>,
) -> T {
    let mut sleeper = Sleeper { waker: cx.waker(), spare: None };
    loop {
        match look(&mut sleeper) {
            Ok(seen) => return seen,
            Err(NeedsClone) => sleeper.spare = Some(cx.waker().clone()),
        }
    }
}
