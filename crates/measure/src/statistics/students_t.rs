//! Quantiles of Student's t distribution.

/// Returns the two-sided quantile of Student's t: |t| exceeds it with probability `missed`.
pub(super) fn quantile(missed: f64, df: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    while high - low > 1e-9 * high {
        let middle = f64::midpoint(low, high);
        if 1.0 - within(middle, df) > missed { low = middle } else { high = middle }
    }
    low
}

/// Returns the two-sided quantile for fractional degrees of freedom, which Welch's test needs.
///
/// Interpolates linearly over 1 ÷ `df` between the neighbouring whole numbers. Quantiles are convex over 1 ÷ `df`, so
/// the result is never too small. Values of `df` below 1 count as 1.
pub(super) fn quantile_between(missed: f64, df: f64) -> f64 {
    /// Above this limit the sums are slow, and the quantiles equal the normal distribution's to about four digits.
    const DF_MAX: f64 = 10_000.0;
    let df = if df.is_finite() { df.clamp(1.0, DF_MAX) } else { DF_MAX };
    let (below, above) = (df.floor(), df.floor() + 1.0);
    let share = (1.0 / below - 1.0 / df) / (1.0 / below - 1.0 / above);
    let (at_below, at_above) = (quantile(missed, below as usize), quantile(missed, above as usize));
    at_below + share * (at_above - at_below)
}

/// Returns the probability that Student's t lies between -`t` and `t`.
///
/// Uses the finite sums for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
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
    fn fractional_degrees_of_freedom_are_interpolated() {
        assert!((quantile_between(0.05, 9.0) - quantile(0.05, 9)).abs() < 1e-12);
        // The midpoint of 1/2 and 1/3 is 1/2.4.
        let middle = f64::midpoint(quantile(0.05, 2), quantile(0.05, 3));
        assert!((quantile_between(0.05, 2.4) - middle).abs() < 1e-9);
        assert!((quantile_between(0.05, 0.3) - quantile(0.05, 1)).abs() < 1e-12);
        assert!((quantile_between(0.05, f64::NAN) - 1.960).abs() < 0.001);
        assert!((quantile_between(0.05, f64::INFINITY) - 1.960).abs() < 0.001);
    }

    #[test]
    fn quantiles_match_published_values() {
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
