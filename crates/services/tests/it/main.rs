//! Tests of the services over real sockets.

mod channelz;
mod fleet;
mod health;
mod orca;
mod reflection;
mod support;
