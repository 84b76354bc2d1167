//! Condenses a comparison of stacks, or a study of channels, to what documents quote of it: `cargo xtask figures
//! --measure` keeps that under `docs/results`.
//!
//! ```text
//! cargo run -p thalweg-lab --example condense -- study/results.json
//! ```

use std::process::ExitCode;

use thalweg_lab::AnyResults;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("name the results.json of a comparison, or of a study of channels");
        return ExitCode::from(2);
    };
    match AnyResults::read(path.as_ref()) {
        Ok(results) => {
            let Some(condensed) = results.condensed() else {
                eprintln!("{path} is no comparison, and no study of channels");
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
