//! Integration tests of channels and servers, one binary for all modules.

mod addresses;
mod backoff;
mod budgets;
mod busy_polling;
mod calls;
mod cancel;
mod channel;
mod compression;
mod content_types;
mod errors;
mod flow;
mod held;
mod honest;
mod in_place;
mod interceptors;
mod lane_changes;
mod lanes;
mod local;
#[cfg(feature = "opentelemetry")]
mod metrics;
mod parents;
mod read_chunks;
mod restarts;
mod server;
mod shutdown;
mod spans;
mod stalls;
mod support;
mod threads;
mod tls;
mod tls_streams;
#[cfg(feature = "opentelemetry")]
mod trace_context;
#[cfg(feature = "opentelemetry")]
mod traces;
mod upkeep;
mod users_code;
mod web;
mod web_alike;
mod web_clients;
mod web_heads;
mod web_held;
mod web_stops;
mod web_times;
mod web_tls;
mod yields;
