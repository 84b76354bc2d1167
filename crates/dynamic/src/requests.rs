//! Requests of a call, as they are read.

use std::future::pending;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use thalweg::bytes::Bytes;
use thalweg::{Raw, Stream};
use tokio::sync::{mpsc, oneshot};

use crate::called::Called;
use crate::delimited;
use crate::texts::{MessageFormat, Texts};

/// Messages that are read ahead of what flow control lets go.
const AHEAD: usize = 16;
/// Bytes of the input that are read at once.
const CHUNK: usize = 64 * 1024;

/// Why requests cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A request does not fit the method.
    #[error("{0}")]
    Invalid(String),
    /// The input cannot be read.
    #[error("cannot read the request: {0}")]
    Unreadable(io::Error),
    /// There is no thread to read on.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// Requests of a call, still to be read.
#[expect(missing_debug_implementations, reason = "it has a reader")]
pub struct RequestSource {
    /// Format of the input.
    pub format: MessageFormat,
    /// Whether unknown fields of JSON are ignored.
    pub ignore_unknown: bool,
    /// The input. `None`: one empty message; no message for a method that takes a stream.
    pub input: Option<Box<dyn Read + Send>>,
}

/// The requests as the transport takes them, in the order in which they are read.
pub(crate) struct Requests<S> {
    messages: mpsc::Receiver<Bytes>,
    /// The first message, once it was waited for.
    first: Option<Bytes>,
    /// Called for each message that is sent, and at their end.
    sent: S,
    has_ended: bool,
}

/// An invalid request. The stream of requests does not end before this is dropped: it would seem complete.
pub(crate) struct Fault {
    pub(crate) why: RequestError,
    _messages: mpsc::Sender<Bytes>,
}

impl RequestSource {
    /// Starts to read. Calls `sent` for each message that is sent, and with `None` at their end. The future ends if a
    /// request is found to be invalid.
    pub(crate) fn start<S>(
        self,
        called: &Called,
        sent: S,
    ) -> Result<(Requests<S>, impl Future<Output = Fault> + use<S>), RequestError> {
        let (messages, taken) = mpsc::channel(AHEAD);
        let (failed, failure) = oneshot::channel();
        let called = called.clone();
        // Reading stdin blocks, and may never end: a thread that ends with the process.
        let thread = thread::Builder::new().spawn(move || {
            let mut send = |wire: Vec<u8>| messages.blocking_send(wire.into()).is_ok();
            if let Err(why) = self.read(&called, &mut send) {
                // Nobody waits for it if the call is over.
                let _ = failed.send(Fault { why, _messages: messages });
            }
        });
        thread.map_err(RequestError::Thread)?;
        let fault = async move {
            match failure.await {
                Ok(fault) => fault,
                Err(_) => pending().await,
            }
        };
        Ok((Requests { messages: taken, first: None, sent, has_ended: false }, fault))
    }

    fn read(self, called: &Called, send: &mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), RequestError> {
        let texts = Texts::of(self.format);
        match (self.input, texts) {
            (None, _) if called.is_client_streaming => Ok(()),
            (None, _) => {
                send(called.empty().map_err(|why| invalid(called, 1, &why))?);
                Ok(())
            }
            (Some(mut input), None) => read_binary(called, &mut *input, send),
            (Some(mut input), Some(texts)) => {
                let encoded = |text: &[u8]| called.encoded(self.format, text, self.ignore_unknown);
                read_texts(called, texts, &mut *input, encoded, send)
            }
        }
    }
}

fn read_texts(
    called: &Called,
    mut texts: Texts,
    input: &mut dyn Read,
    encoded: impl Fn(&[u8]) -> Result<Vec<u8>, String>,
    send: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Result<(), RequestError> {
    let mut count = 0_u64;
    // The one request of a method that takes no stream, held back until it is known to be the only one.
    let mut only = None;
    let mut each = |text: Vec<u8>| {
        count += 1;
        let wire = encoded(&text).map_err(|why| invalid(called, count, &why))?;
        if called.is_client_streaming {
            return Ok(send(wire));
        }
        if only.replace(wire).is_some() {
            let several = "the method takes one request, but -d has several";
            return Err(RequestError::Invalid(several.to_owned()));
        }
        Ok(true)
    };
    let mut chunk = vec![0; CHUNK];
    loop {
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => texts.push(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(RequestError::Unreadable(error)),
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
    if !called.is_client_streaming {
        send(only.map_or_else(|| called.empty().map_err(|why| invalid(called, 1, &why)), Ok)?);
    }
    Ok(())
}

/// All of it for one message, and for a stream each with its length before it.
fn read_binary(
    called: &Called,
    input: &mut dyn Read,
    send: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Result<(), RequestError> {
    if !called.is_client_streaming {
        let mut wire = Vec::new();
        input.read_to_end(&mut wire).map_err(RequestError::Unreadable)?;
        send(wire);
        return Ok(());
    }
    for number in 1_u64.. {
        let next = delimited::next(input).map_err(|fault| match fault {
            delimited::Fault::Wrong(what) => RequestError::Invalid(format!("request {number} {what}")),
            delimited::Fault::Unreadable(error) => RequestError::Unreadable(error),
        });
        let Some(wire) = next? else { break };
        if !send(wire) {
            break;
        }
    }
    Ok(())
}

fn invalid(called: &Called, number: u64, why: &str) -> RequestError {
    let which = if number > 1 { format!("request {number}") } else { "the request".to_owned() };
    RequestError::Invalid(format!("{which} is not a valid {}: {why}", called.request_type))
}

impl<S> Requests<S> {
    /// Waits until the first message has been read and checked.
    pub(crate) async fn first_is_read(&mut self) {
        self.first = self.messages.recv().await;
    }
}

impl<S: FnMut(Option<&Bytes>) + Unpin> Stream for Requests<S> {
    type Item = Raw;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Raw>> {
        let this = &mut *self;
        let message = match this.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => this.messages.poll_recv(cx),
        };
        message.map(|message| {
            if message.is_some() || !std::mem::replace(&mut this.has_ended, true) {
                (this.sent)(message.as_ref());
            }
            message.map(Raw)
        })
    }
}
