//! Condenses a study's results, or reproduced published measurements, to the figures that documents quote.
//! `cargo xtask figures --measure` keeps them in `docs/results`.
//!
//! ```text
//! cargo run -p thalweg-lab --example condense -- study/results.json
//! ```

use std::process::ExitCode;

use thalweg_lab::AnyResults;
use thalweg_lab::published::PublishedResults;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("name the results.json of a comparison, or of a study of channels or codecs");
        return ExitCode::from(2);
    };
    if let Ok(results) = PublishedResults::read(path.as_ref()) {
        print!("{}", results.report().condensed.unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    match AnyResults::read(path.as_ref()) {
        Ok(results) => {
            let Some(condensed) = results.analyse().condensed else {
                eprintln!(
                    "{path} is of no comparison: a study of sizes is condensed when it has several stacks"
                );
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
