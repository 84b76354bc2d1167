//! The publications by their names.

use super::original::{Extent, Original, Run};
use super::publication::Publication;
use super::{channels, codec, json, qt};

/// What was published there.
pub(crate) fn original(publication: Publication) -> &'static Original {
    match publication {
        Publication::Qt => &qt::ORIGINAL,
        Publication::Json => &json::ORIGINAL,
        Publication::Codec => &codec::ORIGINAL,
        Publication::Channels => &channels::ORIGINAL,
    }
}

/// The studies that try it again.
pub fn runs(publication: Publication, extent: Extent) -> Vec<Run> {
    (original(publication).runs)(extent)
}
