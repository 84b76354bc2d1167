//! Runs the examples as processes, and compiles and calls all generated code. One binary for all modules.

mod descriptors;
mod editions;
mod faults;
mod generated;
mod helloworld;
mod mocks;
mod prometheus;
