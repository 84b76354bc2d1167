//! gRPC's [service config]: settings, in JSON, from a service's operators for its clients.
//!
//! The text is read as ProtoJSON, with the lowerCamelCase names only, as in gRPC's other implementations:
//!
//! - Unknown fields are ignored ([`ServiceConfig::unknown_fields`] lists them). A duplicate one is an error.
//! - `null` is the same as a missing field; numbers may be strings.
//! - Known fields must be valid. The error names the first field that is not.
//! - Durations are strings such as `"1.5s"`. Negative ones are invalid.
//!
//! [service config]: https://github.com/grpc/grpc/blob/master/doc/service_config.md

mod config;
mod duration;
mod error;
mod field;
mod json;
mod known;
mod method;
mod policy;
mod selection;
mod similar;
mod throttling;
mod txt;
mod unknown;

#[cfg(test)]
mod tests;

pub use config::ServiceConfig;
pub use error::ServiceConfigError;
pub use method::{AttemptPolicy, MethodConfig, MethodName};
pub use policy::PolicyRegistry;
pub use selection::{Selected, ServiceConfigSelection};
pub use throttling::RetryThrottling;
pub use txt::TxtClient;
pub use unknown::UnknownField;
