//! Streams of messages that are sent from where they are: [`Requests`] of a client, [`Responses`] of a server.
//!
//! A stream gives each message away: it is moved to whoever polls the stream, and often cloned first. For small
//! messages that is most of what sending them costs. The two types of this module are streams as well, so they fit
//! wherever a generated client or service wants one. What sends them knows them, though, and has them *lend* their
//! messages instead: each is encoded where it lies, behind those before it.
//!
//! | to send | |
//! | --- | --- |
//! | one message many times | [`Responses::repeat`] |
//! | what lies in a `Vec`, an array or an `Arc<[T]>` | [`Responses::slice`] |
//! | what an iterator makes, or refers to | [`Responses::iter`] |
//! | anything else, also what has to be waited for | [`Responses::new`] |
//!
//! [`Requests`] has the same. Flow control, compression, limits, deadlines and cancelling are those of every stream.
//! Behind interceptors, and by other protocols than gRPC, the messages are cloned, as a stream's would be.
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
use thalweg_engine as engine;
use tonic::Status;

use crate::codec::Lent;
use crate::message::Message;
use crate::status::to_engine;

/// Messages that go out together, of one of this module's streams: they are encoded as they are
/// [pushed](Self::push).
pub struct Pack<'a, T>(To<'a, T>);

enum To<'a, T> {
    Wire(&'a mut engine::Pack),
    /// Somebody polls the stream itself.
    Stream {
        messages: &'a mut VecDeque<T>,
        clone: fn(&T) -> T,
    },
}

impl<T: Message> Pack<'_, T> {
    /// Encodes `message` behind those that are there. Whether there is room for another: some 64 KiB go out together.
    ///
    /// What is pushed although there is no room goes out all the same. A message that can't be sent, because it is
    /// larger than the call's limit, or panics, ends the call once what is before it has gone out; what is pushed then
    /// is dropped.
    #[inline]
    pub fn push(&mut self, message: &T) -> bool {
        match &mut self.0 {
            To::Wire(pack) => pack.push(&Lent(message)),
            To::Stream { messages, clone } => {
                messages.push_back(clone(message));
                false
            }
        }
    }

    /// Whether there is no room for another message.
    #[inline]
    pub fn is_full(&self) -> bool {
        match &self.0 {
            To::Wire(pack) => pack.is_full(),
            To::Stream { messages, .. } => !messages.is_empty(),
        }
    }
}

impl<T> fmt::Debug for Pack<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pack").finish_non_exhaustive()
    }
}

/// What packs the messages of a stream.
type Fill<T> = Box<dyn FnMut(&mut Context<'_>, &mut Pack<'_, T>) -> Poll<Result<(), Status>> + Send>;

/// Messages that are lent to who sends them, and cloned for who polls the stream.
struct Lending<T> {
    /// `None` behind the end. In a mutex that is never locked: the stream is `Sync`.
    fill: Option<Mutex<Fill<T>>>,
    clone: fn(&T) -> T,
    /// What was packed and is still to be polled.
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
        let mut left = count;
        Self::new(move |_, pack| {
            while left > 0 {
                left -= 1;
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
    /// As [`engine::Source::poll_fill`].
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        pack: &mut engine::Pack,
    ) -> Poll<Result<(), engine::Status>> {
        let Some(fill) = &mut self.fill else { return Poll::Ready(Ok(())) };
        let fill = fill.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Those that somebody polled for before it was given away to be sent.
        while let Some(message) = self.messages.pop_front() {
            pack.push(&Lent(&message));
        }
        let filled = fill(cx, &mut Pack(To::Wire(pack)));
        if filled.is_ready() {
            self.fill = None;
        }
        filled.map(|ended| ended.map_err(|status| to_engine(&status)))
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, Status>>> {
        loop {
            if let Some(message) = self.messages.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            let Some(fill) = &mut self.fill else { return Poll::Ready(self.ended.take().map(Err)) };
            let fill = fill.get_mut().unwrap_or_else(PoisonError::into_inner);
            let to = To::Stream { messages: &mut self.messages, clone: self.clone };
            match fill(cx, &mut Pack(to)) {
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

            /// `message`, so many times.
            pub fn repeat(message: T, count: u64) -> Self {
                Self(Lending::repeat(message, count))
            }

            /// The messages of a slice, in their order: a `Vec<T>`, an array, an `Arc<[T]>` that other calls send, too.
            pub fn slice(messages: impl AsRef<[T]> + Send + 'static) -> Self {
                Self(Lending::slice(messages))
            }

            /// What an iterator gives: messages, references to them, boxes or `Arc`s of them.
            ///
            /// It is asked for the next message when there is room for it, within the task that sends.
            pub fn iter<I>(messages: I) -> Self
            where
                I: IntoIterator<IntoIter: Send + 'static>,
                I::Item: Borrow<T>,
            {
                Self(Lending::iter(messages))
            }
        }

        impl<T: Message> $name<T> {
            /// As [`engine::Source::poll_fill`].
            #[inline]
            pub(crate) fn poll_fill(
                &mut self,
                cx: &mut Context<'_>,
                pack: &mut engine::Pack,
            ) -> Poll<Result<(), engine::Status>> {
                self.0.poll_fill(cx, pack)
            }
        }

        /// Nothing of it is pinned.
        impl<T> Unpin for $name<T> {}

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).field("is_done", &self.0.fill.is_none()).finish_non_exhaustive()
            }
        }
    };
}

outbound!(
    /// The requests of a client stream or of a bidirectional one, sent from where they are: for a generated client's
    /// methods, [`Channel::client_streaming`](crate::Channel::client_streaming) and
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
    "Requests that `fill` packs, as in [`Responses::new`]; none of them fails by itself."
);

outbound!(
    /// The responses of a server stream or of a bidirectional one, sent from where they are: as the stream type of a
    /// service's method.
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
    "Responses that `fill` packs, in the task that sends them.\n\n\
     `fill` [pushes](Pack::push) messages until there is no room, and returns `Poll::Pending` then: it is called again \
     when what it packed has been handed over. It also returns that when it has no message at hand, and wakes the task \
     of its context when it has, as any `poll` function does. `Poll::Ready` ends the stream, for [`Responses`] with OK \
     or with a status. It is dropped with its call.\n\n\
     ```\n\
     use std::task::Poll;\n\
     use thalweg::bytes::Bytes;\n\
     use thalweg::outbound::Responses;\n\
     use thalweg::{Raw, Streaming};\n\
     \n\
     /// The requests again, each read to the place of the one before, and sent from there.\n\
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
        // None of them is an error: `fill` has no way to say so.
        self.0.poll_message(cx).map(|message| message.and_then(Result::ok))
    }
}

impl<T: Message> Stream for Responses<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_message(cx)
    }
}

/// What a call is given to send: any stream, or one of this module's, which is told apart once for each call.
pub(crate) enum Given<S, L> {
    /// A stream that gives its messages away.
    Stream(Pin<Box<S>>),
    /// One that lends them.
    Lending(L),
}

impl<S: 'static, L: 'static> Given<S, L> {
    pub(crate) fn new(given: S) -> Self {
        let mut given = Some(given);
        // The types are the same, or not, for all calls of a method: this is decided when it is compiled.
        let same: &mut dyn std::any::Any = &mut given;
        if let Some(lending) = same.downcast_mut::<Option<L>>().and_then(Option::take) {
            return Self::Lending(lending);
        }
        match given {
            Some(stream) => Self::Stream(Box::pin(stream)),
            None => unreachable!("it was not taken"),
        }
    }
}

impl<S, L> Stream for Given<S, L>
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
