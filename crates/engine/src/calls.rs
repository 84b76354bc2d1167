//! The calls of a client: unary ones on the shortest way, all others as streams; and what both share.

mod attempts;
mod duplex;
mod opening;
mod prepared;
mod raw;
mod streaming;
mod unary;

pub use streaming::Exchange;
pub use unary::UnaryReply;
