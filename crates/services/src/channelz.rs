//! `grpc.channelz.v1.Channelz` ([gRFC A14]): activity of the servers and channels in the process.
//!
//! ```
//! use thalweg_services::channelz::ChannelzService;
//!
//! let server = thalweg::Server::builder().add_service(ChannelzService::new());
//! ```
//!
//! - A *server* is a `thalweg::Server`. It has calls, listening sockets and connections.
//! - A *channel* is a `thalweg::Channel`, and its *subchannels* are its servers; one with all addresses if the channel
//!   does not balance. Their calls are those sent on a connection: retries count again, and calls that find no
//!   connection do not count. Their *traces* have the latest 32 events: state changes, connections, failures.
//! - A *socket* is a connection of a server or channel, or a listening socket.
//!
//! Data is collected from the start of the process at no cost to plain calls. Some fields therefore stay empty: message
//! counts and message times. Times have a resolution of one second.
//!
//! The service exposes the addresses of all peers. See [`admin`](crate::admin) for where to serve it.
//!
//! [gRFC A14]: https://github.com/grpc/proposal/blob/master/A14-channelz.md

mod convert;
pub mod pb;
mod service;

pub use service::ChannelzService;
