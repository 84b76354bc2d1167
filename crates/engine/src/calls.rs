//! Client calls: a fast path for unary calls, streams for all others, and the parts they share.

mod attempts;
mod duplex;
mod hedged_stream;
mod hedged_unary;
mod hedging;
mod prepared;
mod raw;
mod response_reader;
mod retries;
mod streaming;
mod unary;
mod unary_attempt;

pub use streaming::Exchange;
pub use unary::UnaryResponse;
