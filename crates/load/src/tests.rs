//! Runs from end to end, against servers of this process.

mod drive;
mod echo;
