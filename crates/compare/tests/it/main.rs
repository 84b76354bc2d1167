//! Comparisons of figures that are made up: one binary for all modules.

mod compare;
mod formats;
mod study;
mod support;
