//! Metrics of calls, connections and lanes, and traces of calls, with the feature `opentelemetry` and if the
//! application sets them up.
//!
//! Callers of this module are independent of the feature: without it, the same types are empty and do nothing.

#[cfg(feature = "opentelemetry")]
mod call;
#[cfg(feature = "opentelemetry")]
mod client;
#[cfg(feature = "opentelemetry")]
mod client_trace;
#[cfg(feature = "opentelemetry")]
mod connection;
#[cfg(feature = "opentelemetry")]
mod instruments;
#[cfg(feature = "opentelemetry")]
mod metrics;
#[cfg(not(feature = "opentelemetry"))]
mod noop;
#[cfg(feature = "opentelemetry")]
mod server_trace;
#[cfg(feature = "opentelemetry")]
mod setup;
#[cfg(feature = "opentelemetry")]
mod span;
mod span_source;
#[cfg(feature = "opentelemetry")]
mod traces;
#[cfg(feature = "opentelemetry")]
mod unstarted_call;

pub(crate) use span_source::SpanSource;

#[cfg(feature = "opentelemetry")]
pub use {metrics::Metrics, traces::Traces};

#[cfg(feature = "opentelemetry")]
pub(crate) use {
    call::{CallMeasure, ServerMeasure},
    connection::{ChannelMeasure, ConnectionMeasure, EndpointMeasure},
    server_trace::{ServerTrace, drop_with_status},
    setup::Setup,
};

#[cfg(not(feature = "opentelemetry"))]
pub(crate) use noop::{
    CallMeasure, ChannelMeasure, ConnectionMeasure, EndpointMeasure, ServerMeasure, ServerTrace, Setup,
    drop_with_status,
};
