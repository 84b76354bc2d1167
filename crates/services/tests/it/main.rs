//! The services, asked over real sockets.

mod health;
mod reflection;
mod support;
