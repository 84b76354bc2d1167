//! Throttling of retries: `retryThrottling`.

use super::field::{Field, Read};

/// Throttling of retries (gRFC A6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryThrottling {
    /// Size of the token bucket: 1 to 1000.
    pub max_tokens: u32,
    /// Tokens added per success, in thousandths; at least 1.
    pub token_ratio_millis: u32,
}

impl RetryThrottling {
    pub(super) fn read(throttling: &Field<'_>) -> Read<Self> {
        Ok(Self {
            max_tokens: throttling.required("maxTokens", |tokens| tokens.integer(1..=1000))?,
            token_ratio_millis: throttling.required("tokenRatio", |ratio| {
                match millis(ratio.positive()?) {
                    0 => Err(ratio.wrong("a number, 0.001 or more")),
                    millis => Ok(millis),
                }
            })?,
        })
    }
}

/// Returns thousandths; more decimals are cut off. Saturates.
fn millis(ratio: f64) -> u32 {
    // The product may be off by one bit: 1.001 × 1000 is 1000.9999999999999. The quotient of a whole number is not.
    let rounded = (ratio * 1000.0).round();
    let millis = if rounded / 1000.0 > ratio { rounded - 1.0 } else { rounded };
    millis as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_keeps_three_decimals() {
        for millis_exact in (0..=10_000).chain(990_000..=1_000_000) {
            let text = format!("{}.{:03}", millis_exact / 1000, millis_exact % 1000);
            assert_eq!(millis(text.parse().unwrap()), millis_exact, "{text}");
            assert_eq!(millis(format!("{text}99").parse().unwrap()), millis_exact, "{text}99");
        }
        assert_eq!(millis(1e300), u32::MAX);
    }
}
