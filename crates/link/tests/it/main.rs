//! Links over real sockets, in one test binary.

mod breaking;
mod forwarding;
mod support;
