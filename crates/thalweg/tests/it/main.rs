//! Integration tests of channels and servers, one binary for all modules.

mod addresses;
mod backoff;
mod budgets;
mod busy_polling;
mod calls;
mod cancel;
mod channel;
mod compression;
mod connection_end;
mod content_types;
#[cfg(feature = "dns")]
mod dns;
mod errors;
mod flow;
mod honest_peers;
mod interceptors;
mod lane_changes;
mod lanes;
mod local;
mod memory_limits;
#[cfg(feature = "opentelemetry")]
mod metrics;
mod outbound;
mod parents;
mod proxies;
mod read_chunks;
mod reentrancy;
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
mod web;
mod web_clients;
mod web_http;
mod web_memory_limits;
mod web_protocols;
mod web_shutdown;
mod web_timeouts;
mod web_tls;
mod yields;
