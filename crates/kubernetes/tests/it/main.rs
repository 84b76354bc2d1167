//! Tests of the resolver against an API server of the tests' own, over real sockets.

mod api;
mod calls;
mod errors;
mod tls;
mod watches;
