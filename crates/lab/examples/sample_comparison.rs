//! Writes a comparing study whose figures are made up, with its report, to a directory: what a comparison's page looks
//! like, without the hour that measuring one takes.
//!
//! ```text
//! cargo run -p thalweg-lab --example sample_comparison -- /tmp/sample [--whole]
//! ```

#[path = "../tests/sample/comparison.rs"]
mod comparison;

use std::process::ExitCode;

use thalweg_lab::report;
use thalweg_lab::results::{NotWritable, ResultsDirectory};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("name the directory to write to");
        return ExitCode::from(2);
    };
    let results =
        if arguments.any(|word| word == "--whole") { comparison::whole() } else { comparison::quick() };
    let written: Result<_, NotWritable> =
        ResultsDirectory::create(path).and_then(|directory| report::write(&directory, &results));
    match written {
        Ok(page) => {
            println!("{}", page.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
