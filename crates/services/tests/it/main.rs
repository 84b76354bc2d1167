//! The services, asked over real sockets.

mod channelz;
mod health;
mod reflection;
mod support;
