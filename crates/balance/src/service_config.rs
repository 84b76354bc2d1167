//! gRPC's [service config]: settings, in JSON, from a service's operators for its clients.
//!
//! The text is read as ProtoJSON, with the lowerCamelCase names only, as in gRPC's other implementations:
//!
//! - Unknown fields are ignored; `null` is the same as a missing field; numbers may be strings.
//! - Known fields must be valid. The error names the first field that is not.
//! - Durations are strings such as `"1.5s"`. Negative ones are invalid.
//!
//! [service config]: https://github.com/grpc/grpc/blob/master/doc/service_config.md

mod config;
mod duration;
mod error;
mod field;
mod method;
mod policy;
mod selection;
mod throttling;
mod txt;

#[cfg(test)]
mod tests;

pub use config::ServiceConfig;
pub use error::ServiceConfigError;
pub use method::{AttemptPolicy, MethodConfig, MethodName};
pub use policy::PolicyRegistry;
pub use selection::{Selected, ServiceConfigSelection};
pub use throttling::RetryThrottling;
pub use txt::TxtClient;
