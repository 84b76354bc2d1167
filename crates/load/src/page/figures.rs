//! Figures as the page has them.

use thalweg_measure::figures::grouped;

/// All digits before the point in groups that no line ends between; below a thousand three digits.
pub(super) fn whole(value: f64) -> String {
    grouped(value).replace(' ', "\u{202f}")
}
