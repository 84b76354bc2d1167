//! Loads as users specify them, in text: methods by name, requests as JSON or CSV, and scenarios as files.
//!
//! A [`ScenarioSpec`] names methods. With a [`Catalogue`](thalweg_dynamic::Catalogue), which describes them, and
//! [`Connecting`] it becomes a [`Scenario`](crate::Scenario).

mod benchmark;
mod connecting;
mod data;
mod deadline;
mod error;
mod file;
mod rows;
mod scenario;
mod step;
mod stream;
mod templates;

pub use benchmark::{Benchmark, method};
pub use connecting::Connecting;
pub use data::Input;
pub use deadline::{Deadline, TIMEOUT_DEFAULT, YEAR};
pub use error::SpecError;
pub use file::Defaults;
pub use scenario::ScenarioSpec;
pub use step::StepSpec;
pub use stream::StreamSpec;
