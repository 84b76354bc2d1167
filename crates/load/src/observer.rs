//! Who is told how a run goes.

use crate::run::Interval;
use crate::running::Running;

/// Is told how a run goes, on the way of calls: it should do little.
pub trait Observer {
    /// A run begins, with its warm-up if it has one. Where several rates are tried each is a run.
    fn begins(&mut self, running: &Running);

    /// The warm-up is over.
    fn measuring(&mut self) {}

    /// The measured time is over. What is under way may still be waited for.
    fn measured(&mut self) {}

    /// An interval has ended.
    fn interval(&mut self, interval: &Interval, running: &Running);
}

/// Nobody is told.
impl Observer for () {
    fn begins(&mut self, _: &Running) {}

    fn interval(&mut self, _: &Interval, _: &Running) {}
}
