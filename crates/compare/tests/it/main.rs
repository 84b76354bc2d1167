//! Comparisons of figures that are made up: one binary for all modules.

mod alarms;
mod compare;
mod formats;
mod page;
mod study;
mod support;
