//! Measurements of gRPC that others published, tried again: by the studies of this laboratory with each one's systems,
//! sizes and counts, and judged claim by claim.
//!
//! An `Original` is data, in a file for each publication: what was published, which [`Run`]s try it again, and the rule
//! by which each claim is judged from what they found, in a small language of expressions over the measures.
//!
//! A run is a study of its own, whose command anybody can repeat; what it leaves is read back as [`Evidence`]. What
//! came of all claims is [`PublishedResults`], and a page.

mod calls;
mod cell;
mod codec;
mod condensed;
mod evidence;
mod expression;
mod json;
mod judge;
mod judgement;
mod jvm_log;
mod make;
mod original;
mod page;
mod publication;
mod report;
mod results;
mod scope;
mod sources;
mod terminal;
#[cfg(test)]
mod tests;
mod value;

pub use evidence::Evidence;
pub use judge::judge;
pub use make::make;
pub use original::{Extent, Run, runs};
pub use publication::{Publication, UnknownPublication};
pub use results::{PublishedResults, PublishedSettings, RunResult};
