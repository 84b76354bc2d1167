//! What sees calls on their way: interceptors, at a client and at a server.
//!
//! There are two kinds, as with tonic and grpc-go:
//!
//! - A function of the head, `Fn(Request<()>) -> Result<Request<()>, Status>`: it sees and changes the metadata and the
//!   extensions of a request, or refuses the call ([`head`]).
//! - An [`Interceptor`] goes around the whole call: it may wait, sees the messages of both directions and the status,
//!   and may answer by itself. One function is for all four kinds of calls, on both sides.
//!
//! They are set up for a channel ([`Channel::with_interceptor`](crate::Channel::with_interceptor)), for a client or a
//! service (`GreeterClient::with_interceptor`, `GreeterServer::with_interceptor`), or for a server
//! ([`ServerBuilder::interceptor`](crate::server::ServerBuilder::interceptor)). The first that is set up is the
//! outermost: it sees a request first and its reply last.
//!
//! ```
//! use std::time::Instant;
//! use thalweg::interceptor::{Call, Interceptor, Next, Reply};
//! use thalweg::{Server, Status};
//!
//! /// Says what was called, how it ended, and how long it took.
//! struct Log;
//!
//! impl Interceptor for Log {
//!     async fn intercept(&self, call: Call, next: Next) -> Result<Reply, Status> {
//!         let (path, begun) = (call.method().path().to_owned(), Instant::now());
//!         let log = move |status: Result<(), &Status>| println!("{path}: {status:?} after {:?}", begun.elapsed());
//!         match next.run(call).await {
//!             Ok(reply) => Ok(reply.map(|messages| messages.on_end(move |end| log(end.map(|_| ()))))),
//!             Err(status) => {
//!                 log(Err(&status));
//!                 Err(status)
//!             }
//!         }
//!     }
//! }
//!
//! let server = Server::builder().interceptor(Log);
//! ```
//!
//! # What a message is here
//!
//! An [`AnyMessage`]: decoded, as the handler or the caller has it, but of a type that is not named. So one interceptor
//! serves all methods, and can be kept in a list; who knows the type asks for it
//! ([`AnyMessage::downcast_ref`]), and who wants bytes has them ([`AnyMessage::to_bytes`]). The price is a few
//! allocations a call, and one a message, where there is an [`Interceptor`]; functions of the head allocate nothing.
//! Channels and servers without interceptors do not ask for them: they run other code.

mod around;
mod call;
mod message;
mod messages;
mod next;
mod spans;
#[cfg(feature = "tower")]
mod tower;

pub use around::{Head, Interceptor, head};
pub use call::{Call, CallType, Reply, Side};
pub use message::AnyMessage;
pub use messages::Messages;
pub use next::Next;
pub use spans::Spans;
#[cfg(feature = "tower")]
pub use tower::{Innermost, Layered, layer};

pub(crate) use around::InterceptorLink;
pub(crate) use next::{BoxFuture, Chain, Last, Link};
