//! `least_request`: calls go to the least loaded endpoint of a random sample (gRFC A48).

#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::{Decision, EndpointView, Pick, PickArgs, Picker, Policy, mix};

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

/// Connects all endpoints, and sends each call to the least loaded of a random sample of the ready ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRequest(LeastRequestConfig);

#[derive(Clone, Debug)]
struct Sampling {
    /// Positions of the ready endpoints; never empty.
    ready: Vec<usize>,
    choice_count: u64,
}

impl LeastRequest {
    /// Creates the policy.
    pub fn new(config: LeastRequestConfig) -> Self {
        Self(config)
    }
}

impl Policy for LeastRequest {
    fn name(&self) -> &'static str {
        "least_request_experimental"
    }

    fn reconfigure(&mut self, settings: &dyn Any) -> bool {
        let Some(config) = settings.downcast_ref::<LeastRequestConfig>() else { return false };
        *self = Self::new(*config);
        true
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], _: Instant) -> Decision {
        let choice_count = u64::from(self.0.choice_count.clamp(CHOICE_COUNT_MIN, CHOICE_COUNT_MAX));
        Decision::connecting_all(endpoints, |ready| Arc::new(Sampling { ready, choice_count }))
    }
}

impl Picker for Sampling {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        let sampled = self.sample(call.turn);
        // The first of several minima is the earliest sampled, as in gRFC A48.
        Pick::Endpoint(sampled.min_by_key(|&at| (call.in_flight)(at)).unwrap_or(self.ready[0]))
    }
}

impl Sampling {
    /// Returns the positions that a turn samples. One may occur twice, as in gRFC A48.
    fn sample(&self, turn: u64) -> impl Iterator<Item = usize> {
        let turn = mix(turn);
        (0..self.choice_count).map(move |choice| {
            let random = u128::from(mix(turn.wrapping_add(choice)));
            self.ready[((random * self.ready.len() as u128) >> 64) as usize]
        })
    }
}
