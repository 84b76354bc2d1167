//! Reproduces published measurements of gRPC with this lab's studies, using each publication's systems, sizes and
//! counts. Each claim is judged.
//!
//! An `Original` is data, one file per publication: its claims, the [`Run`]s that reproduce it, and a rule for each
//! claim. Rules are written in a small expression language over the measures.
//!
//! A run is a separate study that anybody can repeat from its command line. Its results are read back as [`Evidence`].
//! [`PublishedResults`] has the verdicts on all claims, and writes a page.

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
