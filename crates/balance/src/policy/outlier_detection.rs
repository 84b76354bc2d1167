//! `outlier_detection`: endpoints that fail more calls than others take none for a while (gRFC A50).

mod config;

pub use config::{FailurePercentageEjection, OutlierDetectionConfig, SuccessRateEjection};
