//! Streams of messages that are encoded in place: [`Requests`] of a client, [`Responses`] of a server.
//!
//! An ordinary stream moves each message to its poller, often after a clone. For small messages that is most of the
//! cost of sending them. The two types of this module are streams as well, so generated clients and services accept
//! them. The transport recognises them, though, and lets them *lend* their messages: each is encoded in place, after
//! those before it.
//!
//! | to send | |
//! | --- | --- |
//! | one message many times | [`Responses::repeat`] |
//! | a `Vec`, an array or an `Arc<[T]>` | [`Responses::slice`] |
//! | an iterator over messages or references | [`Responses::iter`] |
//! | anything else, including asynchronous sources | [`Responses::new`] |
//!
//! [`Requests`] has the same constructors. Flow control, compression, limits, deadlines and cancellation work as for
//! every stream. Behind interceptors, and with protocols other than gRPC, the messages are cloned.
//!
//! ```
//! use thalweg::outbound::{Requests, Responses};
//! # use thalweg::Raw;
//! # use thalweg::bytes::Bytes;
//! # let (reading, readings) = (Raw(Bytes::new()), vec![Raw(Bytes::new())]);
//!
//! // let reply = client.record(Requests::slice(readings)).await?;
//! let requests = Requests::slice(readings);
//! // type WatchStream = Responses<Reading>;
//! let responses = Responses::repeat(reading, 1_000_000);
//! # let _: (Requests<Raw>, Responses<Raw>) = (requests, responses);
//! ```

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;
use thalweg_core::Status;
use thalweg_engine as engine;

use crate::codec::BorrowedMessage;
use crate::message::Message;

/// A batch of messages that are sent together, encoded as they are [pushed](Self::push).
pub struct Pack<'a, T>(PackTarget<'a, T>);

enum PackTarget<'a, T> {
    Wire(&'a mut engine::Pack),
    /// The stream is polled as an ordinary stream.
    Stream {
        messages: &'a mut VecDeque<T>,
        clone: fn(&T) -> T,
    },
}

impl<T: Message> Pack<'_, T> {
    /// Encodes `message` after those in the batch. Returns true if there is room for another: a batch is about 64 KiB.
    ///
    /// Messages pushed without room are sent, too. A message that exceeds the call's size limit, or panics, ends the
    /// call once those before it are sent; messages pushed after it are dropped.
    #[inline]
    pub fn push(&mut self, message: &T) -> bool {
        match &mut self.0 {
            PackTarget::Wire(pack) => pack.push(&BorrowedMessage(message)),
            PackTarget::Stream { messages, clone } => {
                messages.push_back(clone(message));
                false
            }
        }
    }

    /// Returns true if there is no room for another message.
    #[inline]
    pub fn is_full(&self) -> bool {
        match &self.0 {
            PackTarget::Wire(pack) => pack.is_full(),
            PackTarget::Stream { messages, .. } => !messages.is_empty(),
        }
    }
}

impl<T> fmt::Debug for Pack<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pack").finish_non_exhaustive()
    }
}

/// Packs the messages of a stream.
type Fill<T> = Box<dyn FnMut(&mut Context<'_>, &mut Pack<'_, T>) -> Poll<Result<(), Status>> + Send>;

/// Messages that are lent to the transport, or cloned for a poller.
struct Lending<T> {
    /// `None` after the end. The mutex is never locked; it keeps the stream `Sync`.
    fill: Option<Mutex<Fill<T>>>,
    clone: fn(&T) -> T,
    /// Messages packed but not yet polled.
    messages: VecDeque<T>,
    ended: Option<Status>,
}

impl<T: Message + Clone> Lending<T> {
    fn new(
        fill: impl FnMut(&mut Context<'_>, &mut Pack<'_, T>) -> Poll<Result<(), Status>> + Send + 'static,
    ) -> Self {
        let fill: Fill<T> = Box::new(fill);
        Self { fill: Some(Mutex::new(fill)), clone: T::clone, messages: VecDeque::new(), ended: None }
    }

    fn repeat(message: T, count: u64) -> Self {
        let mut remaining = count;
        Self::new(move |_, pack| {
            while remaining > 0 {
                remaining -= 1;
                if !pack.push(&message) {
                    return Poll::Pending;
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    fn slice(messages: impl AsRef<[T]> + Send + 'static) -> Self {
        let mut next = 0;
        Self::new(move |_, pack| {
            for message in messages.as_ref().get(next..).unwrap_or_default() {
                next += 1;
                if !pack.push(message) {
                    return Poll::Pending;
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    fn iter<I>(messages: I) -> Self
    where
        I: IntoIterator<IntoIter: Send + 'static>,
        I::Item: Borrow<T>,
    {
        let mut messages = messages.into_iter();
        Self::new(move |_, pack| {
            for message in &mut messages {
                if !pack.push(message.borrow()) {
                    return Poll::Pending;
                }
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl<T: Message> Lending<T> {
    /// See [`engine::Source::poll_fill`].
    fn poll_fill(&mut self, cx: &mut Context<'_>, pack: &mut engine::Pack) -> Poll<Result<(), Status>> {
        let Some(fill) = &mut self.fill else { return Poll::Ready(Ok(())) };
        let fill = fill.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Messages that were polled for before the stream was passed to the transport.
        while let Some(message) = self.messages.pop_front() {
            pack.push(&BorrowedMessage(&message));
        }
        let filled = fill(cx, &mut Pack(PackTarget::Wire(pack)));
        if filled.is_ready() {
            self.fill = None;
        }
        filled
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            let Some(fill) = &mut self.fill else { return Poll::Ready(self.ended.take().map(Err)) };
            let fill = fill.get_mut().unwrap_or_else(PoisonError::into_inner);
            let target = PackTarget::Stream { messages: &mut self.messages, clone: self.clone };
            match fill(cx, &mut Pack(target)) {
                Poll::Pending if self.messages.is_empty() => return Poll::Pending,
                Poll::Pending => {}
                Poll::Ready(ended) => {
                    self.fill = None;
                    self.ended = ended.err();
                }
            }
        }
    }
}

macro_rules! outbound {
    ($(#[$doc:meta])* $name:ident, $end:ty, |$polled:ident| $to_result:expr, $new:literal) => {
        $(#[$doc])*
        pub struct $name<T>(Lending<T>);

        impl<T: Message + Clone> $name<T> {
            #[doc = $new]
            pub fn new(
                mut fill: impl FnMut(&mut Context<'_>, &mut Pack<'_, T>) -> Poll<$end> + Send + 'static,
            ) -> Self {
                Self(Lending::new(move |cx, pack| {
                    let $polled = fill(cx, pack);
                    $to_result
                }))
            }

            /// Sends `message` `count` times.
            pub fn repeat(message: T, count: u64) -> Self {
                Self(Lending::repeat(message, count))
            }

            /// Sends the messages of a slice in order: a `Vec<T>`, an array, or an `Arc<[T]>` shared between calls.
            pub fn slice(messages: impl AsRef<[T]> + Send + 'static) -> Self {
                Self(Lending::slice(messages))
            }

            /// Sends the items of an iterator: messages, references to them, boxes or `Arc`s of them.
            ///
            /// The sending task asks for the next message when there is room for it.
            pub fn iter<I>(messages: I) -> Self
            where
                I: IntoIterator<IntoIter: Send + 'static>,
                I::Item: Borrow<T>,
            {
                Self(Lending::iter(messages))
            }
        }

        impl<T: Message> $name<T> {
            /// See [`engine::Source::poll_fill`].
            #[inline]
            pub(crate) fn poll_fill(
                &mut self,
                cx: &mut Context<'_>,
                pack: &mut engine::Pack,
            ) -> Poll<Result<(), Status>> {
                self.0.poll_fill(cx, pack)
            }
        }

        /// Nothing in it is pinned.
        impl<T> Unpin for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("is_done", &self.0.fill.is_none()).finish_non_exhaustive()
            }
        }
    };
}

outbound!(
    /// Requests of a client-streaming or bidirectional call, encoded in place. For methods of generated clients,
    /// [`Channel::client_streaming`](crate::Channel::client_streaming) and
    /// [`Channel::bidi_streaming`](crate::Channel::bidi_streaming).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use thalweg::bytes::Bytes;
    /// use thalweg::outbound::Requests;
    /// use thalweg::{CallOptions, Channel, Method, Raw, Request, Status};
    ///
    /// static RECORD: Method = Method::new("/weather.Station/Record");
    ///
    /// async fn record(channel: &Channel, readings: Arc<[Raw]>) -> Result<Raw, Status> {
    ///     // With generated code: `station.record(Requests::slice(readings)).await`
    ///     let requests = Request::new(Requests::slice(readings));
    ///     let reply = channel.client_streaming(&RECORD, requests, &CallOptions::default()).await?;
    ///     Ok(reply.into_inner())
    /// }
    /// ```
    Requests,
    (),
    |polled| polled.map(Ok),
    "Creates requests that `fill` packs, as in [`Responses::new`]. `fill` cannot return an error."
);

outbound!(
    /// Responses of a server-streaming or bidirectional call, encoded in place. For the stream type of a service's
    /// method.
    ///
    /// ```
    /// use thalweg::bytes::Bytes;
    /// use thalweg::outbound::Responses;
    /// use thalweg::{Raw, Request, Response, Status};
    ///
    /// // With generated code: `type CountStream = Responses<Number>`
    /// async fn count(request: Request<Raw>) -> Result<Response<Responses<Raw>>, Status> {
    ///     let numbers = (0..1_000_u32).map(|number| Raw(Bytes::from(number.to_string())));
    ///     Ok(Response::new(Responses::iter(numbers)))
    /// }
    /// ```
    Responses,
    Result<(), Status>,
    |polled| polled,
    "Creates responses that `fill` packs, in the task that sends them.\n\n\
     `fill` [pushes](Pack::push) messages until there is no room, then returns `Poll::Pending`. It is called again \
     when the packed messages have been handed over. It also returns `Poll::Pending` if no message is ready, and wakes \
     the task of its context once one is, like any `poll` function. `Poll::Ready` ends the stream: for [`Responses`], \
     with OK or a status. `fill` is dropped with its call.\n\n\
     ```\n\
     use std::task::Poll;\n\
     use thalweg::bytes::Bytes;\n\
     use thalweg::outbound::Responses;\n\
     use thalweg::{Raw, Streaming};\n\
     \n\
     /// Echoes the requests, and reuses the memory of one message.\n\
     fn echo(mut requests: Streaming<Raw>) -> Responses<Raw> {\n\
     \x20   let mut message = Raw::default();\n\
     \x20   Responses::new(move |cx, pack| {\n\
     \x20       while !pack.is_full() {\n\
     \x20           match requests.poll_message_into(cx, &mut message) {\n\
     \x20               Poll::Ready(Ok(true)) => pack.push(&message),\n\
     \x20               Poll::Ready(ended) => return Poll::Ready(ended.map(drop)),\n\
     \x20               Poll::Pending => return Poll::Pending,\n\
     \x20           };\n\
     \x20       }\n\
     \x20       Poll::Pending\n\
     \x20   })\n\
     }\n\
     ```"
);

impl<T: Message> Stream for Requests<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        // There are no errors here: `fill` of requests cannot return one.
        self.0.poll_message(cx).map(|message| message.and_then(Result::ok))
    }
}

impl<T: Message> Stream for Responses<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_message(cx)
    }
}

/// Messages to send: any stream, or one of this module's, distinguished once per call.
pub(crate) enum OutboundMessages<S, L> {
    /// A stream that moves its messages.
    Stream(Pin<Box<S>>),
    /// A stream that lends its messages.
    Lending(L),
}

impl<S: 'static, L: 'static> OutboundMessages<S, L> {
    pub(crate) fn new(stream: S) -> Self {
        let mut stream = Some(stream);
        // The types are the same for all calls of a method, so the compiler resolves this.
        let any_stream: &mut dyn std::any::Any = &mut stream;
        if let Some(lending) = any_stream.downcast_mut::<Option<L>>().and_then(Option::take) {
            return Self::Lending(lending);
        }
        match stream {
            Some(stream) => Self::Stream(Box::pin(stream)),
            None => unreachable!("taken only above"),
        }
    }
}

impl<S, L> Stream for OutboundMessages<S, L>
where
    S: Stream,
    L: Stream<Item = S::Item> + Unpin,
{
    type Item = S::Item;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut *self {
            Self::Stream(stream) => stream.as_mut().poll_next(cx),
            Self::Lending(lending) => Pin::new(lending).poll_next(cx),
        }
    }
}
