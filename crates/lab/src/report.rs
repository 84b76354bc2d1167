//! Reports: the analysis of a study becomes text for a terminal, a CSV and one self-contained page.

pub(crate) mod origin;
pub(crate) mod page;
pub(crate) mod terminal;
pub(crate) mod topics;

use std::path::PathBuf;

use thalweg_measure::text::wrapped;
use thalweg_protobuf::printable;

use crate::findings::Doubt;
use crate::study::directory::{NotWritable, ResultsDirectory};

/// The name of the page in the study's directory.
pub(crate) const REPORT_FILE: &str = "report.html";
pub(crate) use page::CSV_FILE;

/// A study that has been analysed: what exporters write down, each in its format.
pub trait Report {
    /// The figures as a table, a line for each.
    fn csv(&self) -> String;

    /// The page.
    fn page(&self) -> String;

    /// Tables and findings for a terminal.
    fn text(&self) -> String;

    /// What documents quote, as small JSON; `None` where there is nothing of the kind.
    fn condensed(&self) -> Option<String> {
        None
    }

    /// What a reader must know before using the figures.
    fn doubts(&self) -> &[Doubt];

    /// Why the study has no answer, and what to do, if too many of its windows are not valid.
    fn unanswered(&self) -> Option<&str> {
        None
    }
}

/// A study that has been analysed, in all formats.
#[derive(Debug)]
pub(crate) struct WrittenReport {
    pub(crate) csv: String,
    pub(crate) page: String,
    pub(crate) text: String,
    pub(crate) condensed: Option<String>,
    pub(crate) doubts: Vec<Doubt>,
    pub(crate) unanswered: Option<String>,
}

impl Report for WrittenReport {
    fn csv(&self) -> String {
        self.csv.clone()
    }

    fn page(&self) -> String {
        self.page.clone()
    }

    fn text(&self) -> String {
        self.text.clone()
    }

    fn condensed(&self) -> Option<String> {
        self.condensed.clone()
    }

    fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    fn unanswered(&self) -> Option<&str> {
        self.unanswered.as_deref()
    }
}

/// Writes the files of a report beside the results. Returns where the page is.
pub fn write(directory: &ResultsDirectory, report: &dyn Report) -> Result<PathBuf, NotWritable> {
    for (file, text) in [(CSV_FILE, report.csv()), (REPORT_FILE, report.page())] {
        directory.write(file, &printable::text(&text))?;
    }
    Ok(directory.path().join(REPORT_FILE))
}

/// What a terminal shows: why there is no answer, tables and findings, and the first of the doubts.
pub fn terminal(report: &dyn Report) -> String {
    let unanswered = report.unanswered().map(wrapped).unwrap_or_default();
    unanswered + &report.text() + &terminal::doubts(report.doubts())
}
