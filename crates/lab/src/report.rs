//! Reports: one results JSON becomes a terminal table, a CSV and one self-contained page.

mod csv;
mod html;
mod terminal;

use std::path::PathBuf;

use crate::results::{LabResults, NotWritable, ResultsDirectory};

pub use csv::csv;
pub use html::html;
pub(crate) use html::{Page, concat, escaped, filled, script_json, short};
pub use terminal::terminal;
pub(crate) use terminal::{aligned, wrapped};

/// The name of the page in the study's directory.
pub const REPORT_FILE: &str = "report.html";
/// The name of the table in the study's directory.
pub const CSV_FILE: &str = "results.csv";

/// Writes the results, the table and the page. Returns where the page is.
pub fn write(directory: &ResultsDirectory, results: &LabResults) -> Result<PathBuf, NotWritable> {
    directory.save(results)?;
    directory.write(CSV_FILE, &csv(results))?;
    directory.write(REPORT_FILE, &html(results))?;
    Ok(directory.path().join(REPORT_FILE))
}
