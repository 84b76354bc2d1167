//! The generator, from `.proto` files to code and to what it says of wrong ones: one binary for all modules.

mod errors;
mod golden;
mod plugin;
