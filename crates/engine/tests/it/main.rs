//! The engine without an API layer: its client against its server, and each against a scripted peer.

mod balance;
mod budgets;
mod calls;
mod cancel;
mod client;
mod connection_limits;
mod deadlines;
mod dispatch;
mod drain;
mod early;
mod fallback;
mod hostile_servers;
mod keepalive;
mod local;
mod misbehaving;
mod pings;
mod rates;
mod raw;
mod reading;
mod resolved_config;
mod retries;
mod retry_policy;
mod sizes;
mod support;
mod turns;
