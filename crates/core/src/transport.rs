//! Information on the connection of a call.

pub mod server;
