//! The laboratory: it measures RPC stacks and says what it saw.
//!
//! `plan -> drive -> record -> analyse -> report`, each a module with plain values between them. A study is data; what
//! drives it never prints; what reports it never measures.

pub mod cpus;
pub mod record;
