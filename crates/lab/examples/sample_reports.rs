//! Writes studies whose figures are made up, each with its report, to folders of a directory: what the pages look like,
//! without the hours that measuring takes.
//!
//! ```text
//! cargo run -p thalweg-lab --example sample_reports -- /tmp/samples
//! ```

#[path = "../tests/it/sample/channels.rs"]
mod channels;
#[path = "../tests/it/sample/codec.rs"]
mod codec;
#[path = "../tests/it/sample/comparison.rs"]
mod comparison;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use thalweg_lab::load::LabResults;
use thalweg_lab::study::{NotWritable, ResultsDirectory};
use thalweg_lab::{AnyResults, report};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("name the directory to write to");
        return ExitCode::from(2);
    };
    match write(Path::new(&path)) {
        Ok(pages) => {
            for page in pages {
                println!("{}", page.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn write(directory: &Path) -> Result<Vec<PathBuf>, NotWritable> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sample/results.json");
    let calls = |results: LabResults| AnyResults::Calls(Box::new(results));
    let studies = [
        ("sizes", calls(LabResults::read(&sample).expect("the sample is in the tree"))),
        ("comparison", calls(comparison::quick())),
        ("comparison-whole", calls(comparison::whole())),
        ("channels", calls(channels::quick())),
        ("codec", AnyResults::Codec(Box::new(codec::quick()))),
    ];
    let mut pages = Vec::new();
    for (name, results) in studies {
        let folder = ResultsDirectory::create(directory.join(name))?;
        results.save(&folder)?;
        pages.push(report::write(&folder, &*results.analyse())?);
    }
    Ok(pages)
}
