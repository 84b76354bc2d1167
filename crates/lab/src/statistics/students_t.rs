//! Quantiles of Student's t.

/// Student's t that is exceeded, to either side, with this probability.
pub(super) fn quantile(missed: f64, df: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    while high - low > 1e-9 * high {
        let middle = f64::midpoint(low, high);
        if 1.0 - within(middle, df) > missed { low = middle } else { high = middle }
    }
    low
}

/// The probability that Student's t lies between -`t` and `t`: the finite sums for whole degrees of freedom (Abramowitz
/// and Stegun, 26.7.3 and 26.7.4).
fn within(t: f64, df: usize) -> f64 {
    let angle = (t / (df as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let first = df % 2;
    let mut term = if first == 1 { cosine } else { 1.0 };
    let mut sum = 0.0;
    for k in (first..df.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= (k + 1) as f64 / (k + 2) as f64 * cosine * cosine;
    }
    if first == 1 { (angle + sine * sum) * 2.0 / std::f64::consts::PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_meet_the_published_values() {
        for (missed, df, published) in [
            (0.05, 1, 12.706),
            (0.05, 2, 4.303),
            (0.05, 3, 3.182),
            (0.05, 9, 2.262),
            (0.05, 120, 1.980),
            (0.01, 5, 4.032),
            (0.05, 30, 2.042),
            (0.02, 5, 3.365),
            (0.01, 4, 4.604),
            (0.001, 9, 4.781),
        ] {
            assert!(
                (quantile(missed, df) - published).abs() < 0.001,
                "{missed}, {df}: {}",
                quantile(missed, df)
            );
        }
    }
}
