//! Number formatting of the page.

use thalweg_measure::figures::grouped;

/// Formats all integer digits in groups joined by no-break spaces; below 1000, three significant digits.
pub(super) fn integer(value: f64) -> String {
    grouped(value).replace(' ', "\u{202f}")
}
