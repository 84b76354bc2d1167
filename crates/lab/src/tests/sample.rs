//! Studies whose figures are made up: none was measured.

pub(crate) mod alone;
pub(crate) mod channels;
pub(crate) mod codec;
pub(crate) mod comparison;
pub(crate) mod connections;
pub(crate) mod json;
pub(crate) mod published;

use std::sync::LazyLock;

use crate::load::LabResults;

/// A quick study of `sizes`.
pub(crate) fn sizes() -> LabResults {
    static SIZES: LazyLock<LabResults> = LazyLock::new(|| {
        serde_json::from_str(include_str!("sample/results.json")).expect("the sample is what a study saves")
    });
    SIZES.clone()
}
