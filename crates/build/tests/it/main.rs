//! Tests of generated code and of errors, in one binary.

mod errors;
mod golden;
mod plugin;
