//! Interceptors: code around calls, on clients and servers.
//!
//! There are two kinds, as in tonic and grpc-go:
//!
//! - A function `Fn(Request<()>) -> Result<Request<()>, Status>` ([`head`]): it sees and changes the metadata and
//!   extensions of a request, or rejects the call.
//! - An [`Interceptor`] wraps the whole call: it may wait, sees the messages of both directions and the status, and may
//!   respond itself. The same function serves all four call types, on both sides.
//!
//! Interceptors are added to a channel ([`Channel::with_interceptor`](crate::Channel::with_interceptor)), to a client
//! or a service (`GreeterClient::with_interceptor`, `GreeterServer::with_interceptor`), or to a server
//! ([`ServerBuilder::interceptor`](crate::server::ServerBuilder::interceptor)). The outermost interceptor sees a
//! request first and its response last. On a server, that is the first one added. On a channel, client or service, each
//! new one wraps those before.
//!
//! ```
//! use std::time::Instant;
//! use thalweg::interceptor::{Call, Interceptor, Next, Reply};
//! use thalweg::{Server, Status};
//!
//! /// Logs the method, the outcome and the duration of each call.
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
//! # Messages
//!
//! Messages are [`AnyMessage`]s: decoded, like those of the handler or the caller, but of an erased type. So one
//! interceptor serves all methods and can be stored in a list. [`AnyMessage::downcast_ref`] returns the typed message,
//! and [`AnyMessage::to_bytes`] its bytes. An [`Interceptor`] costs a few allocations per call and one per message;
//! functions of the head allocate nothing. Channels and servers without interceptors run separate code and pay nothing.

mod call;
mod intercept;
mod message;
mod messages;
mod next;
mod spans;
#[cfg(feature = "tower")]
mod tower;

pub use call::{Call, CallType, Reply, Side};
pub use intercept::{Head, Interceptor, head};
pub use message::AnyMessage;
pub use messages::Messages;
pub use next::Next;
pub use spans::Spans;
#[cfg(feature = "tower")]
pub use tower::{Innermost, Layered, layer};

pub(crate) use intercept::InterceptorLink;
pub(crate) use next::{BoxFuture, Chain, Last, Link};
