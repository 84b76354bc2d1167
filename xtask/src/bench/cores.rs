//! One core a side: where both share two, the scheduler decides who waits.

pub(super) const CLIENT: &str = "taskset -c 0";
pub(super) const SERVER: &str = "taskset -c 1";
