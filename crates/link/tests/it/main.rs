//! Links over real sockets: one binary for all modules.

mod breaking;
mod forwarding;
mod support;
