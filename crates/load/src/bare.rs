//! The leanest client and server that hold many connections: one thread each, over epoll.
//!
//! The server echoes bytes, and is the floor under what any server costs: for each message an event, a `recv` and a
//! `send`. The client keeps a number of calls under way on each active connection. It speaks two protocols: the
//! server's own, and gRPC by frames that were encoded once. So all servers have the same load, from a client that
//! costs little beside its two system calls.
//!
//! Sockets are watched edge-triggered: what is not watched anew costs the kernel no look at it. A `recv` that did not
//! fill the buffer has drained the socket, so there is no second one.

mod bounds;
mod connection;
mod driver;
mod grpc;
mod messages;
mod server;
mod wire;

pub use driver::drive;
pub use server::EchoServer;
