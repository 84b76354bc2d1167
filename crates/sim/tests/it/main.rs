//! Simulations and fuzzing: one binary for all modules.

mod fuzz;
mod grpc;
mod http2;
mod pair;
