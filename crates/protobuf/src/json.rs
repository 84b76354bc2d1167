//! [ProtoJSON](https://protobuf.dev/programming-guides/json/).

mod fault;
mod read;
mod write;

pub use fault::ParseError;
