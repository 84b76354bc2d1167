//! `least_request`: calls go to the least loaded endpoint of a random sample (gRFC A48).

/// Settings of `least_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeastRequestConfig {
    /// Number of ready endpoints that are sampled per call: 2 to 10, 2 by default.
    pub choice_count: u32,
}

impl LeastRequestConfig {
    /// Sets the size of the sample; clamped to 2..=10.
    pub fn choice_count(mut self, count: u32) -> Self {
        self.choice_count = count.clamp(CHOICE_COUNT_MIN, CHOICE_COUNT_MAX);
        self
    }
}

impl Default for LeastRequestConfig {
    fn default() -> Self {
        Self { choice_count: CHOICE_COUNT_MIN }
    }
}

const CHOICE_COUNT_MIN: u32 = 2;
const CHOICE_COUNT_MAX: u32 = 10;
