//! End-to-end runs against servers in this process.

mod drive;
mod echo;
