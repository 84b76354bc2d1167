//! Trailing metadata that a source of messages returns at its end.

use http::HeaderMap;

use crate::status::Status;

/// Adds the trailers that a source returned at its end: to the others, or to the metadata of its failure.
pub(super) fn with_late_trailers(
    outcome: Result<(), Status>,
    trailers: Option<HeaderMap>,
    late: Option<HeaderMap>,
) -> Result<Option<HeaderMap>, Status> {
    let Some(late) = late else { return outcome.map(|()| trailers) };
    outcome.map_err(|status| status.prepend_metadata(&late))?;
    let mut all = trailers.unwrap_or_default();
    all.extend(late);
    Ok(Some(all))
}
