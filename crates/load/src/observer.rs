//! Notification of a run's progress.

use crate::run::Interval;
use crate::running::Running;

/// Receives events of a run. Called on the thread that drives the calls, so implementations must be quick.
pub trait Observer {
    /// A run begins, including its warm-up. In a search each tried rate is a run.
    fn begins(&mut self, running: &Running);

    /// The warm-up has ended.
    fn measuring(&mut self) {}

    /// The measured time has ended. Calls in flight may still be awaited.
    fn measured(&mut self) {}

    /// An interval has ended.
    fn interval(&mut self, interval: &Interval, running: &Running);
}

/// Ignores all events.
impl Observer for () {
    fn begins(&mut self, _: &Running) {}

    fn interval(&mut self, _: &Interval, _: &Running) {}
}
