//! Windows of the same round, side by side.

use thalweg_measure::statistics::Ratio;

/// Of figures, each with its round: those of the same round make a pair.
pub(super) fn ratio(ones: &[(u32, f64)], others: &[(u32, f64)]) -> Option<Ratio> {
    let pair = |&(round, one): &(u32, f64)| {
        let other = others.iter().find(|other| other.0 == round)?.1;
        Some((one, other))
    };
    Ratio::of_pairs(ones.iter().filter_map(pair))
}
