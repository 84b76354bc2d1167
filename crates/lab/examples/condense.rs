//! Condenses a comparison of stacks, or a study of channels, to what documents quote of it: `cargo xtask figures
//! --measure` keeps that under `docs/results`.
//!
//! ```text
//! cargo run -p thalweg-lab --example condense -- study/results.json
//! ```

use std::process::ExitCode;

use thalweg_lab::channels::Channels;
use thalweg_lab::load::{LabResults, StudyKind};
use thalweg_lab::sizes::Sizes;
use thalweg_lab::study::Study;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("name the results.json of a comparison, or of a study of channels");
        return ExitCode::from(2);
    };
    match LabResults::read(path.as_ref()) {
        Ok(results) => {
            let condensed = match results.study {
                StudyKind::Sizes => Sizes::analyse(&results).condensed(),
                StudyKind::Channels => Some(Channels::analyse(&results).condensed()),
            };
            let Some(condensed) = condensed else {
                eprintln!("{path} is no comparison");
                return ExitCode::FAILURE;
            };
            print!("{condensed}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
