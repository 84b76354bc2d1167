//! Balancing policies: which endpoints connect, and which gets each call.

mod build;
mod config;
mod decision;
mod graceful_switch;
mod least_request;
mod load_report;
mod outlier_detection;
mod per_endpoint;
mod pick_first;
mod random;
mod random_subsetting;
mod ring_hash;
mod round_robin;
mod view;
mod weighted_round_robin;

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;

pub use config::{OutlierDetectionConfig, PolicyConfig, PolicyFactory, RandomSubsettingConfig};
pub use decision::{Decision, EndpointWeight, NoneReady, Pick, PickArgs, Picker, Policy};
pub use graceful_switch::GracefulSwitch;
pub use least_request::{LeastRequest, LeastRequestConfig};
pub use load_report::LoadReport;
pub use outlier_detection::{FailurePercentageEjection, OutlierDetection, SuccessRateEjection};
pub use pick_first::{PickFirst, PickFirstConfig};
pub use random::mix;
pub use random_subsetting::RandomSubsetting;
pub use ring_hash::{RING_SIZE_MAX, RingHash, RingHashConfig};
pub use round_robin::RoundRobin;
pub use view::{EndpointView, Needs, Outcomes, ReportSource, state_of};
pub use weighted_round_robin::{WeightedRoundRobin, WeightedRoundRobinConfig};
