//! Results of earlier loads, in files.

use std::fs;
use std::path::Path;

use thalweg_dynamic::texts::BYTE_ORDER_MARK;
use thalweg_load::LoadRun;

use crate::failure::Failure;

/// What `thalweg load --call METHOD -O json` wrote.
pub(crate) fn read_result(path: &Path) -> Result<LoadRun, Failure> {
    let failed = |why: String| Failure::failed(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    serde_json::from_str(text.trim_start_matches(BYTE_ORDER_MARK))
        .map_err(|error| failed(format!("is not a result of `thalweg load --call METHOD -O json`: {error}")))
}
