//! The laboratory: it measures RPC stacks and says what it saw.
//!
//! `plan -> drive -> record -> analyse -> report`, each a module with plain values between them. A study is data; what
//! drives it never prints; what reports it never measures.

pub mod analyse;
pub mod codec;
pub mod conduct;
pub mod cpus;
pub mod drive;
pub mod execute;
pub mod figures;
pub mod interrupt;
mod kernel;
pub mod limit;
pub mod peers;
pub mod plan;
pub mod process;
pub mod record;
pub mod report;
pub mod results;
pub mod services;
pub mod size;
pub mod stack;
mod usage;
