//! The messages of a call's requests.

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use thalweg::bytes::Bytes;
use thalweg::{Raw, Stream};
use thalweg_dynamic::Called;
use thalweg_dynamic::delimited;
use thalweg_dynamic::texts::{MessageFormat, Texts};
use tokio::sync::{mpsc, oneshot};

use super::arguments::CallArgs;
use super::saved::Sent;
use super::timeline::Timeline;
use crate::failure::Failure;
use crate::runtime;

/// Messages that are read ahead of what flow control lets go.
const AHEAD: usize = 16;
/// Bytes of the input that are read at once.
const CHUNK: usize = 64 * 1024;

/// How requests are written, and where.
pub(super) struct RequestSource {
    called: Called,
    format: MessageFormat,
    ignores_unknown: bool,
    data: Data,
}

enum Data {
    /// Nothing was said.
    None,
    /// On the command line.
    Text(String),
    File(File),
    Stdin,
}

/// The requests as the transport takes them, in the order in which they come. What is wrong with them is told apart.
pub(super) struct Requests {
    messages: mpsc::Receiver<Bytes>,
    /// The first message, once it was waited for.
    first: Option<Bytes>,
    sent: Sent,
    timeline: Timeline,
    has_ended: bool,
}

/// What is wrong with a request. The stream of requests does not end before this is dropped: it would seem complete.
pub(super) struct Fault {
    pub(super) why: Failure,
    _messages: mpsc::Sender<Bytes>,
}

impl RequestSource {
    /// What is not there is said before anything is connected to.
    pub(super) fn new(called: &Called, args: &CallArgs) -> Result<Self, Failure> {
        let data = match args.data.as_deref() {
            None => Data::None,
            Some("@" | "@-") => Data::Stdin,
            Some(text) => match text.strip_prefix('@') {
                None => Data::Text(text.to_owned()),
                Some(path) => match File::open(path) {
                    Ok(file) => Data::File(file),
                    Err(error) => return Err(Failure::failed(format!("cannot read {path}: {error}"))),
                },
            },
        };
        let (called, ignores_unknown) = (called.clone(), args.allow_unknown_fields);
        Ok(Self { called, format: args.input, ignores_unknown, data })
    }

    /// The requests, as they are read; and what is wrong with one of them, if something is.
    pub(super) fn begin(
        self,
        sent: Sent,
        timeline: Timeline,
    ) -> Result<(Requests, oneshot::Receiver<Fault>), Failure> {
        let (messages, taken) = mpsc::channel(AHEAD);
        let (failed, failure) = oneshot::channel();
        // Reading stdin blocks, and may never end: a thread that ends with the process.
        runtime::thread(move || {
            let mut send = |wire: Vec<u8>| messages.blocking_send(wire.into()).is_ok();
            if let Err(why) = self.read(&mut send) {
                // Nobody waits for it if the call is over.
                let _ = failed.send(Fault { why, _messages: messages });
            }
        })?;
        Ok((Requests { messages: taken, first: None, sent, timeline, has_ended: false }, failure))
    }

    fn read(mut self, send: &mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), Failure> {
        let mut input: Box<dyn Read> = match std::mem::replace(&mut self.data, Data::None) {
            Data::None => {
                if !self.called.is_client_streaming {
                    send(self.called.empty().map_err(|why| self.no_request(1, &why))?);
                }
                return Ok(());
            }
            Data::Text(text) => Box::new(io::Cursor::new(text)),
            Data::File(file) => Box::new(file),
            Data::Stdin => Box::new(io::stdin().lock()),
        };
        match Texts::of(self.format) {
            Some(texts) => self.read_texts(texts, &mut *input, send),
            None => self.read_binary(&mut *input, send),
        }
    }

    fn read_texts(
        &self,
        mut texts: Texts,
        input: &mut dyn Read,
        send: &mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Result<(), Failure> {
        let mut count = 0_u64;
        // The one request of a method that takes no stream, held back until it is known to be the only one.
        let mut only = None;
        let mut each = |text: Vec<u8>| {
            count += 1;
            let wire = self.called.encoded(self.format, &text, self.ignores_unknown);
            let wire = wire.map_err(|why| self.no_request(count, &why))?;
            if self.called.is_client_streaming {
                return Ok(send(wire));
            }
            if only.replace(wire).is_some() {
                return Err(Failure::bad_arguments("the method takes one request, but -d has several"));
            }
            Ok(true)
        };
        let mut chunk = vec![0; CHUNK];
        loop {
            match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => texts.push(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(&error)),
            }
            for text in texts.by_ref() {
                if !each(text)? {
                    return Ok(());
                }
            }
        }
        if let Some(text) = texts.rest() {
            each(text)?;
        }
        match only {
            _ if self.called.is_client_streaming => {}
            Some(wire) => _ = send(wire),
            None => _ = send(self.called.empty().map_err(|why| self.no_request(1, &why))?),
        }
        Ok(())
    }

    fn no_request(&self, number: u64, why: &str) -> Failure {
        let which = if number > 1 { format!("request {number}") } else { "the request".to_owned() };
        Failure::bad_arguments(format!("{which} is not a valid {}: {why}", self.called.request_type))
    }

    /// All of it for one message, and for a stream each with its length before it.
    fn read_binary(
        &self,
        input: &mut dyn Read,
        send: &mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Result<(), Failure> {
        if !self.called.is_client_streaming {
            let mut wire = Vec::new();
            input.read_to_end(&mut wire).map_err(|error| unreadable(&error))?;
            send(wire);
            return Ok(());
        }
        for number in 1_u64.. {
            let wire = match delimited::next(input) {
                Ok(Some(wire)) => wire,
                Ok(None) => break,
                Err(delimited::Fault::Wrong(what)) => {
                    return Err(Failure::bad_arguments(format!("request {number} {what}")));
                }
                Err(delimited::Fault::Unreadable(error)) => return Err(unreadable(&error)),
            };
            if !send(wire) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn unreadable(error: &io::Error) -> Failure {
    Failure::failed(format!("cannot read the request: {error}"))
}

impl Requests {
    /// Waits until the first message has been read and checked.
    pub(super) async fn first_is_read(&mut self) {
        self.first = self.messages.recv().await;
    }
}

impl Stream for Requests {
    type Item = Raw;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        let this = &mut *self;
        let message = match this.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => this.messages.poll_recv(cx),
        };
        message.map(|message| {
            if let Some(wire) = message {
                this.sent.push(&this.timeline, &wire);
                return Some(Raw(wire));
            }
            if !std::mem::replace(&mut this.has_ended, true) {
                this.timeline.ended("send", this.sent.described());
            }
            None
        })
    }
}
