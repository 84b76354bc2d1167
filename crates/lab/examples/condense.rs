//! Condenses a comparison to what documents quote of it: `cargo xtask figures --measure` keeps that under
//! `docs/results`.
//!
//! ```text
//! cargo run -p thalweg-lab --example condense -- study/results.json
//! ```

use std::process::ExitCode;

use thalweg_lab::load::LabResults;
use thalweg_lab::sizes::Sizes;
use thalweg_lab::study::Study;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("name the results.json of a comparison");
        return ExitCode::from(2);
    };
    match LabResults::read(path.as_ref()) {
        Ok(results) => {
            let Some(condensed) = Sizes::analyse(&results).condensed() else {
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
