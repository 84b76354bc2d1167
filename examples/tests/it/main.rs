//! The examples as processes, and all generated code compiled and called: one binary for all modules.

mod descriptors;
mod editions;
mod faults;
mod generated;
mod helloworld;
mod mocks;
mod prometheus;
