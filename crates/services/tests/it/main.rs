//! Tests of the services over real sockets.

mod channelz;
mod health;
mod reflection;
mod support;
