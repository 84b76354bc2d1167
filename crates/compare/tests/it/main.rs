//! Comparisons of synthetic figures, in one test binary.

mod alarms;
mod compare;
mod formats;
mod page;
mod study;
mod support;
