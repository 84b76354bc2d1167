//! The command as a process: one binary for all modules.

mod call;
mod codec;
mod compare;
mod completions;
mod connections;
mod disturbed;
mod errors;
mod export;
mod flags;
mod inspect;
mod inspect_capture;
mod link;
mod live;
mod load_any;
mod load_connecting;
mod load_ends;
mod load_over_time;
mod load_scenario;
mod load_schema;

mod man;
mod many_connections;
mod otlp;

mod serve_and_load;
mod shares;
mod shells;
mod support;
mod terminal;
mod tls;
