//! Measurements of gRPC that others published, tried again: by the studies of this laboratory with each one's systems,
//! sizes and counts, and judged claim by claim.
//!
//! An `Original` says what was published, which [`Run`]s try it again, and how each `Claim` is judged by what they
//! found. A run is a study of its own, whose command anybody can repeat; what it leaves is read back as [`Evidence`].
//! What came of all claims is [`PublishedResults`], and a page.

mod calls;
mod channels;
mod claim;
mod codec;
mod condensed;
mod evidence;
mod grid;
mod json;
mod judge;
mod judgement;
mod jvm_log;
mod make;
mod original;
mod originals;
mod page;
mod publication;
mod qt;
mod report;
mod results;
mod situations;
mod terminal;
#[cfg(test)]
mod tests;

pub use evidence::Evidence;
pub use judge::judge;
pub use make::make;
pub use original::{Extent, Run};
pub use originals::runs;
pub use publication::{Publication, UnknownPublication};
pub use results::{PublishedResults, RunResult, Settings};
