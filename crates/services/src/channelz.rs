//! `grpc.channelz.v1.Channelz` ([gRFC A14]): what the servers and channels of the process do.
//!
//! ```
//! use thalweg_services::channelz::ChannelzService;
//!
//! let server = thalweg::Server::builder().add_service(ChannelzService::new());
//! ```
//!
//! - A *server* is one of `thalweg::Server`'s. It has its calls, the sockets that it listens on and its connections.
//! - A *channel* is one of `thalweg::Channel`'s, and its *subchannels* are its lanes. Its calls are those that it has
//!   sent on a connection: one that is retried is counted again, and one that finds no connection is none.
//! - A *socket* is a connection of either, or one that is listened on.
//!
//! Everything is there from the start of the process; plain calls pay nothing for it. That is why some fields stay
//! empty: the numbers of messages, when they came and went, and when a client called last. Times are to the second.
//!
//! Whoever can reach it learns the addresses of all peers. [`admin`](crate::admin) says where it belongs.
//!
//! [gRFC A14]: https://github.com/grpc/proposal/blob/master/A14-channelz.md

mod convert;
pub mod pb;
mod service;

pub use service::ChannelzService;
