//! Minimal client and server for many connections: one thread each, over epoll.
//!
//! The server echoes bytes. It is the lower bound of any server's cost: per message an event, a `recv` and a `send`.
//! The client keeps a number of calls in flight on each active connection. It speaks the server's own protocol, and
//! gRPC with frames encoded once. So all servers get the same load, from a client that costs little more than two
//! system calls.
//!
//! Sockets are watched edge-triggered, so the kernel does not check them again. A `recv` that did not fill the buffer
//! has drained the socket, so there is no second one.

mod bounds;
mod connection;
mod driver;
mod grpc;
mod messages;
mod server;
mod wire;

pub use driver::drive;
pub use server::EchoServer;
