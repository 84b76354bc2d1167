//! Balancing, retries and service config of a gRPC channel over many servers, as pure state machines.
//!
//! ```text
//!   resolver ──► Resolution { endpoints, service config }
//!                     │ Policy::select
//!                     ▼
//!   endpoints with states, loads, reports ──Policy::decide──► Decision { picker, connect, wake_at }
//!                                                                  │ Picker::pick, per call
//!                                                                  ▼
//!                                                            one endpoint
//!   outcome of an attempt ──RetryState / HedgingState──► retry after …, commit, or fail
//! ```
//!
//! Nothing here reads a clock or opens a socket: the time is an argument. The same input gives the same output, so
//! tests run in virtual time and a seed replays a failure.

mod backoff;
mod code_set;
pub mod endpoint;
pub mod health;
pub mod policy;
pub mod resolving;
pub mod retry;
pub mod service_config;
pub mod watching;
mod wire;

pub use thalweg_core::Code;

pub use backoff::Backoff;
pub use code_set::CodeSet;
pub use endpoint::{Address, ConnectivityState, Endpoint, Locality};
pub use wire::MalformedMessage;
