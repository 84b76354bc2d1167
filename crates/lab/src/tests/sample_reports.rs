//! Writes sample pages, without the hours of measuring.

use std::{env, fs};

use super::sample::{self, alone, channels, codec, comparison, connections, json};
use super::scratch;
use crate::AnyResults;
use crate::load::LabResults;
use crate::report::{self, REPORT_FILE};
use crate::study::ResultsDirectory;
use crate::study::directory::{CSV_FILE, RESULTS_FILE};

/// Writes reports of the sample studies to subfolders of `THALWEG_SAMPLE_REPORTS`. Without the variable they go to a
/// temporary folder.
#[test]
fn reports_of_the_samples_are_written() {
    let kept = env::var_os("THALWEG_SAMPLE_REPORTS").map(std::path::PathBuf::from);
    let directory = kept.clone().unwrap_or_else(|| scratch("samples"));
    let calls = |results: LabResults| AnyResults::Calls(Box::new(results));
    let studies = [
        ("sizes", calls(alone::quick())),
        ("sizes-whole", calls(alone::whole())),
        ("sizes-single", calls(sample::sizes())),
        ("comparison", calls(comparison::quick())),
        ("comparison-whole", calls(comparison::whole())),
        ("channels", calls(channels::quick())),
        ("connections", calls(connections::quick())),
        ("codec", AnyResults::Codec(Box::new(codec::quick()))),
        ("json", AnyResults::Json(Box::new(json::quick()))),
    ];
    for (name, results) in studies {
        let folder = ResultsDirectory::create(directory.join(name)).unwrap();
        results.save(&folder).unwrap();
        let report = results.analyse();
        report::write(&folder, &report).unwrap();
        folder.write("terminal.txt", &report::terminal(&report)).unwrap();
        folder.write("condensed.json", &report.condensed.unwrap_or_default()).unwrap();
        for file in [RESULTS_FILE, CSV_FILE, REPORT_FILE] {
            let len = fs::metadata(directory.join(name).join(file)).unwrap().len();
            assert!(len > 1000, "{file} of {name} has {len} bytes");
        }
        AnyResults::read(&directory.join(name).join(RESULTS_FILE)).unwrap();
    }
    if kept.is_none() {
        fs::remove_dir_all(directory).unwrap();
    }
}
