//! Reports: writes a study's analysis as terminal text, a CSV file and one self-contained page.

pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod terminal;
pub(crate) mod topics;

use std::path::PathBuf;

use thalweg_measure::text::wrapped;
use thalweg_protobuf::printable;

use crate::findings::Doubt;
use crate::study::directory::{CSV_FILE, NotWritable, ResultsDirectory};

/// Name of the page in the study's directory.
pub(crate) const REPORT_FILE: &str = "report.html";

/// A study's report in all formats.
#[derive(Clone, Debug)]
pub struct Report {
    /// The figures as a table, one line each.
    pub csv: String,
    /// The page.
    pub page: String,
    /// Tables and findings for a terminal.
    pub text: String,
    /// Figures that documents quote, as JSON; `None` if the study has none.
    pub condensed: Option<String>,
    /// Doubts about the figures.
    pub doubts: Vec<Doubt>,
    /// Why the study has no answer, and what to do, if too many of its windows are not valid.
    pub unanswered: Option<String>,
}

/// Writes the report's files next to the results, and returns the path of the page.
pub fn write(directory: &ResultsDirectory, report: &Report) -> Result<PathBuf, NotWritable> {
    for (file, text) in [(CSV_FILE, &report.csv), (REPORT_FILE, &report.page)] {
        directory.write(file, &printable::text(text))?;
    }
    Ok(directory.path().join(REPORT_FILE))
}

/// Returns the terminal output: why there is no answer, tables and findings, and the first doubts.
pub fn terminal(report: &Report) -> String {
    let unanswered = report.unanswered.as_deref().map(wrapped).unwrap_or_default();
    unanswered + &report.text + &terminal::doubts(&report.doubts)
}
