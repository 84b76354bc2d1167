//! Reports: the analysis of a study becomes text for a terminal, a CSV and one self-contained page.

pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod terminal;
pub(crate) mod topics;

use std::path::PathBuf;

use thalweg_measure::text::wrapped;
use thalweg_protobuf::printable;

use crate::findings::Doubt;
use crate::study::directory::{CSV_FILE, NotWritable, ResultsDirectory};

/// The name of the page in the study's directory.
pub(crate) const REPORT_FILE: &str = "report.html";

/// What a study says, in all formats.
#[derive(Clone, Debug)]
pub struct Report {
    /// The figures as a table, a line for each.
    pub csv: String,
    /// The page.
    pub page: String,
    /// Tables and findings for a terminal.
    pub text: String,
    /// What documents quote, as small JSON; `None` where there is nothing of the kind.
    pub condensed: Option<String>,
    /// What a reader must know before using the figures.
    pub doubts: Vec<Doubt>,
    /// Why the study has no answer, and what to do, if too many of its windows are not valid.
    pub unanswered: Option<String>,
}

/// Writes the files of a report beside the results. Returns where the page is.
pub fn write(directory: &ResultsDirectory, report: &Report) -> Result<PathBuf, NotWritable> {
    for (file, text) in [(CSV_FILE, &report.csv), (REPORT_FILE, &report.page)] {
        directory.write(file, &printable::text(text))?;
    }
    Ok(directory.path().join(REPORT_FILE))
}

/// What a terminal shows: why there is no answer, tables and findings, and the first of the doubts.
pub fn terminal(report: &Report) -> String {
    let unanswered = report.unanswered.as_deref().map(wrapped).unwrap_or_default();
    unanswered + &report.text + &terminal::doubts(&report.doubts)
}
