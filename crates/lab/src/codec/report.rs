//! A codec study as a table in a terminal, as CSV, and as one page.

mod csv;
mod html;
mod terminal;

use std::path::PathBuf;

use super::results::CodecResults;
use crate::report::{CSV_FILE, REPORT_FILE};
use crate::results::{NotWritable, ResultsDirectory};

pub use csv::csv;
pub use html::html;
pub use terminal::terminal;

/// Writes the results, the table and the page. Returns where the page is.
pub fn write(directory: &ResultsDirectory, results: &CodecResults) -> Result<PathBuf, NotWritable> {
    directory.save(results)?;
    directory.write(CSV_FILE, &csv(results))?;
    directory.write(REPORT_FILE, &html(results))?;
    Ok(directory.path().join(REPORT_FILE))
}
