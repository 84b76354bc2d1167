//! Values in paths and queries.

use thalweg_protobuf::Field;
use thalweg_protobuf::json::{self, ParseError, ParseOptions};

use super::nested;

/// Appends a value for the last of the nested `fields`.
pub(super) fn put(
    fields: &[Field<'_>],
    text: &str,
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), String> {
    let Some((last, parents)) = fields.split_last() else { return Ok(()) };
    if parents.is_empty() {
        return json::parse_text(*last, text, options, wire).map_err(problem);
    }
    let mut record = Vec::with_capacity(text.len() + 8);
    json::parse_text(*last, text, options, &mut record).map_err(problem)?;
    nested::put_nested(parents, record.len(), wire, |wire| wire.extend_from_slice(&record));
    Ok(())
}

/// Returns the problem with a value, and its position in the value if it has parts.
pub(super) fn problem(error: ParseError) -> String {
    if error.path.is_empty() || !error.path.contains(['.', '[']) {
        return error.problem;
    }
    format!("{}: {}", error.path, error.problem)
}
