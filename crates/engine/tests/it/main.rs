//! The engine over sockets, without a face.

mod beside;
mod raw;
