//! Reads and sends the requests of a call.

use std::future::pending;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use thalweg::bytes::Bytes;
use thalweg::{Raw, Stream};
use tokio::sync::{mpsc, oneshot};

use crate::delimited;
use crate::resolved_method::ResolvedMethod;
use crate::texts::{MessageFormat, Texts};

/// Messages read ahead of flow control.
const MESSAGES_AHEAD_MAX: usize = 16;
/// Size of reads in bytes.
const CHUNK_LEN: usize = 64 * 1024;

/// Error of reading requests.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A request does not match the method.
    #[error("{0}")]
    Invalid(String),
    /// The input cannot be read.
    #[error("failed to read the request: {0}")]
    Unreadable(io::Error),
    /// No thread could be started for reading.
    #[error("failed to start a thread: {0}")]
    Thread(io::Error),
}

/// Source of the requests of a call.
#[expect(missing_debug_implementations, reason = "holds a reader")]
pub struct RequestSource {
    /// Format of the input.
    pub format: MessageFormat,
    /// Whether unknown JSON fields are ignored.
    pub ignore_unknown: bool,
    /// Input. `None` means one empty message, or none for a method that takes a stream.
    pub input: Option<Box<dyn Read + Send>>,
}

/// Stream of requests for the transport, in order.
pub(crate) struct Requests<S> {
    messages: mpsc::Receiver<Bytes>,
    /// The first message, after waiting for it.
    first: Option<Bytes>,
    /// Called for each message sent, and with `None` after the last.
    sent: S,
    has_ended: bool,
}

/// An invalid request. Keeps the stream of requests open until dropped, so that it does not seem complete.
pub(crate) struct FailedRead {
    pub(crate) why: RequestError,
    _messages: mpsc::Sender<Bytes>,
}

impl RequestSource {
    /// Starts reading. Calls `sent` for each message sent, and with `None` after the last. The future completes if a
    /// request is invalid.
    pub(crate) fn start<S>(
        self,
        method: &ResolvedMethod,
        sent: S,
    ) -> Result<(Requests<S>, impl Future<Output = FailedRead> + use<S>), RequestError> {
        let (messages, receiver) = mpsc::channel(MESSAGES_AHEAD_MAX);
        let (failed, failure) = oneshot::channel();
        let method = method.clone();
        // Uses a detached thread, because reads of stdin block and may never end.
        let thread = thread::Builder::new().spawn(move || {
            let mut send = |wire: Vec<u8>| messages.blocking_send(wire.into()).is_ok();
            if let Err(why) = self.read(&method, &mut send) {
                // Fails only if the call has ended.
                let _ = failed.send(FailedRead { why, _messages: messages });
            }
        });
        thread.map_err(RequestError::Thread)?;
        let failure = async move {
            match failure.await {
                Ok(failure) => failure,
                Err(_) => pending().await,
            }
        };
        Ok((Requests { messages: receiver, first: None, sent, has_ended: false }, failure))
    }

    fn read(
        self,
        method: &ResolvedMethod,
        send: &mut dyn FnMut(Vec<u8>) -> bool,
    ) -> Result<(), RequestError> {
        let texts = Texts::of(self.format);
        match (self.input, texts) {
            (None, _) if method.is_client_streaming => Ok(()),
            (None, _) => {
                send(method.empty().map_err(|why| invalid(method, 1, &why))?);
                Ok(())
            }
            (Some(mut input), None) => read_binary(method, &mut *input, send),
            (Some(mut input), Some(texts)) => {
                let encoded = |text: &[u8]| method.encoded(self.format, text, self.ignore_unknown);
                read_texts(method, texts, &mut *input, encoded, send)
            }
        }
    }
}

fn read_texts(
    method: &ResolvedMethod,
    mut texts: Texts,
    input: &mut dyn Read,
    encoded: impl Fn(&[u8]) -> Result<Vec<u8>, String>,
    send: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Result<(), RequestError> {
    let mut count = 0_u64;
    // The request of a method without request stream, held until it is known to be the only one.
    let mut only = None;
    let mut each = |text: Vec<u8>| {
        count += 1;
        let wire = encoded(&text).map_err(|why| invalid(method, count, &why))?;
        if method.is_client_streaming {
            return Ok(send(wire));
        }
        if only.replace(wire).is_some() {
            let several = "the method takes one request, but -d has several";
            return Err(RequestError::Invalid(several.to_owned()));
        }
        Ok(true)
    };
    let mut chunk = vec![0; CHUNK_LEN];
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
    if !method.is_client_streaming {
        send(only.map_or_else(|| method.empty().map_err(|why| invalid(method, 1, &why)), Ok)?);
    }
    Ok(())
}

/// Reads one message, or delimited messages for a stream.
fn read_binary(
    method: &ResolvedMethod,
    input: &mut dyn Read,
    send: &mut dyn FnMut(Vec<u8>) -> bool,
) -> Result<(), RequestError> {
    if !method.is_client_streaming {
        let mut wire = Vec::new();
        input.read_to_end(&mut wire).map_err(RequestError::Unreadable)?;
        send(wire);
        return Ok(());
    }
    for number in 1_u64.. {
        let next = delimited::next(input).map_err(|error| match error {
            delimited::DelimitedError::Malformed(what) => {
                RequestError::Invalid(format!("request {number} {what}"))
            }
            delimited::DelimitedError::Unreadable(error) => RequestError::Unreadable(error),
        });
        let Some(wire) = next? else { break };
        if !send(wire) {
            break;
        }
    }
    Ok(())
}

fn invalid(method: &ResolvedMethod, number: u64, why: &str) -> RequestError {
    let which = if number > 1 { format!("request {number}") } else { "the request".to_owned() };
    RequestError::Invalid(format!("{which} is not a valid {}: {why}", method.request_type))
}

impl<S> Requests<S> {
    /// Waits until the first message is read and validated.
    pub(crate) async fn wait_for_first(&mut self) {
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
