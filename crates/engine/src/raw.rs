//! Raw HTTP requests and responses, for API layers with their own gRPC implementation and for non-gRPC requests.
//!
//! [`Channel::raw`](crate::Channel::raw) sends a request and returns the response;
//! [`Handler::raw`](crate::server::Handler::raw) handles requests. Bodies implement `http_body::Body`. A body that is a
//! single piece with its end, such as a unary call's, takes the fast path of unary calls. It needs one operation under
//! the connection's lock, and no task.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderMap, HeaderName, Method, Request, StatusCode, Uri, Version};
use http_body::Frame;
use thalweg_http2::fields::{FieldList, Indexing};

use crate::connection::{Pack, Source};
use crate::connection_info::ConnectionInfo;
use crate::encode::Encode;
use crate::grpc::envelope::SizeCheck;
use crate::grpc::metadata::{self, MetadataTooLarge};
use crate::grpc::status::stated as stated_status;
use crate::status::{Code, Status};
use crate::{Chain, grpc::content_type};

/// The headers of a raw request.
#[derive(Clone, Copy, Debug)]
pub struct RawHead<'a> {
    /// `:method`.
    pub method: &'a Method,
    /// Scheme, authority, path and query, as far as present.
    pub uri: &'a Uri,
    /// The HTTP version.
    pub version: Version,
    /// All other fields.
    pub headers: &'a HeaderMap,
    /// The connection of the request, if the server is configured to report it.
    pub connection: Option<&'a Arc<ConnectionInfo>>,
}

impl RawHead<'_> {
    /// Creates a request with these headers.
    pub fn to_request<B>(&self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// The end of a body.
#[derive(Clone, Debug, Default)]
pub enum Trailers {
    /// No trailers.
    #[default]
    None,
    /// `grpc-status: 0` alone.
    GrpcOk,
    /// Other trailer fields.
    Fields(Box<HeaderMap>),
}

/// A body to be sent.
pub trait OutgoingBody: http_body::Body<Data = Bytes> + Unpin + Send + 'static {
    /// Converts an error of the body to a status.
    fn status(error: Self::Error) -> Status;

    /// Returns the whole body if it is a single piece that is available, and leaves it empty. Other bodies return
    /// `None` and are polled for frames.
    fn take_complete(&mut self) -> Option<(Piece, Trailers)> {
        None
    }

    /// Appends the available messages, with prefixes, until `out` has at least `len_max` bytes, and calls `note` with
    /// the length of each. `None` if the body has only frames.
    ///
    /// Ready when there are no more messages; the body is then polled for its last frame. Pending if `out` is full, or
    /// if no message is available, and the task is woken when there is one.
    fn poll_encode(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Chain,
        len_max: usize,
        note: &mut dyn FnMut(usize),
    ) -> Option<Poll<()>> {
        let _ = (cx, out, len_max, note);
        None
    }
}

/// Bytes of a body, sent verbatim.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    front: Bytes,
    rest: VecDeque<Bytes>,
}

impl Piece {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.parts().map(Bytes::len).sum()
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.parts().all(Bytes::is_empty)
    }

    /// Returns the bytes in order.
    pub fn parts(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.front).chain(&self.rest)
    }

    /// Returns the bytes if they are contiguous.
    pub fn as_contiguous(&self) -> Option<&Bytes> {
        self.rest.is_empty().then_some(&self.front)
    }

    /// Takes the first part; `None` if there is nothing left.
    pub fn take_part(&mut self) -> Option<Bytes> {
        let next = self.rest.pop_front().unwrap_or_default();
        let part = std::mem::replace(&mut self.front, next);
        (!part.is_empty()).then_some(part)
    }
}

impl From<Bytes> for Piece {
    fn from(front: Bytes) -> Self {
        Self { front, rest: VecDeque::new() }
    }
}

impl From<Chain> for Piece {
    fn from(mut chain: Chain) -> Self {
        if chain.as_contiguous().is_some() {
            return Bytes::from(std::mem::take(chain.buffer())).into();
        }
        let mut parts = chain.take_parts().into_iter();
        Self { front: parts.next().unwrap_or_default(), rest: parts.collect() }
    }
}

impl Encode for Piece {
    const IS_FRAMED: bool = true;

    #[inline]
    fn encoded_len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.parts().for_each(|part| out.extend_from_slice(part));
    }

    fn encode_chained(&self, out: &mut Chain) {
        self.parts().for_each(|part| out.push(part.clone()));
    }
}

/// The available beginning of a body.
pub(crate) enum Front {
    Complete(Piece, Trailers),
    /// More may follow these pieces.
    Started([Option<Bytes>; 2]),
}

impl Front {
    /// Polls a body for its first piece and its end.
    pub(crate) fn of<B: OutgoingBody>(body: &mut B, cx: &mut Context<'_>) -> Result<Self, Status> {
        if let Some((piece, trailers)) = body.take_complete() {
            return Ok(Self::Complete(piece, trailers));
        }
        let mut pieces = [None, None];
        for piece in &mut pieces {
            match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Pending => return Ok(Self::Started(pieces)),
                Poll::Ready(None) => break,
                Poll::Ready(Some(frame)) => match of_frame(frame.map_err(B::status)?) {
                    Ok(bytes) => *piece = Some(bytes),
                    Err(trailers) => {
                        let [bytes, _] = pieces;
                        return Ok(Self::Complete(bytes.unwrap_or_default().into(), trailers));
                    }
                },
            }
        }
        match pieces {
            [bytes, None] => Ok(Self::Complete(bytes.unwrap_or_default().into(), Trailers::None)),
            pieces => Ok(Self::Started(pieces)),
        }
    }
}

/// Returns the bytes of a data frame; the error is its trailers.
fn of_frame(frame: Frame<Bytes>) -> Result<Bytes, Trailers> {
    frame.into_data().map_err(|frame| frame.into_trailers().map_or(Trailers::None, Trailers::of))
}

/// The pieces of a body to be sent.
pub(crate) struct Pieces<B> {
    pub(crate) first: [Option<Bytes>; 2],
    /// `None` once it has ended.
    pub(crate) body: Option<B>,
    /// Trailers after the last piece.
    pub(crate) trailers: Trailers,
    /// Checks the messages, if their size is limited.
    pub(crate) sizes: Option<SizeCheck>,
}

impl<B> Pieces<B> {
    fn checked(&mut self, bytes: Bytes) -> Result<Piece, Status> {
        match &mut self.sizes {
            None => Ok(bytes.into()),
            Some(sizes) => check_sent(sizes, &bytes).map(|()| bytes.into()),
        }
    }
}

/// Checks the sizes of messages to be sent.
///
/// # Errors
/// RESOURCE_EXHAUSTED if one is too large.
pub(crate) fn check_sent(sizes: &mut SizeCheck, bytes: &[u8]) -> Result<(), Status> {
    sizes.pass(bytes).map_err(|size| {
        Status::local(Code::ResourceExhausted, format!(
            "trying to send message larger than max ({size} vs. {}): see maxRequestMessageBytes of the channel's \
             service config",
            sizes.size_max()
        ))
    })
}

/// Checks the sizes of received messages.
///
/// # Errors
/// RESOURCE_EXHAUSTED if one is too large.
pub(crate) fn check_received(sizes: &mut SizeCheck, bytes: &[u8]) -> Result<(), Status> {
    sizes.pass(bytes).map_err(|size| {
        Status::local(Code::ResourceExhausted, format!(
            "received message larger than max ({size} vs. {}): see maxResponseMessageBytes of the channel's \
             service config",
            sizes.size_max()
        ))
    })
}

impl<B: OutgoingBody> Stream for Pieces<B> {
    type Item = Result<Piece, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.iter_mut().find_map(Option::take) {
            return Poll::Ready(Some(self.checked(first)));
        }
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let Poll::Ready(frame) = Pin::new(body).poll_frame(cx) else { return Poll::Pending };
        let piece = match frame {
            None => None,
            Some(Err(error)) => Some(Err(B::status(error))),
            Some(Ok(frame)) => match of_frame(frame) {
                Ok(bytes) => return Poll::Ready(Some(self.checked(bytes))),
                Err(trailers) => {
                    self.trailers = trailers;
                    None
                }
            },
        };
        self.body = None;
        Poll::Ready(piece)
    }
}

impl<B: OutgoingBody> Source for Pieces<B> {
    type Message = Piece;

    fn poll_fill(&mut self, cx: &mut Context<'_>, pack: &mut Pack) -> Poll<Result<(), Status>> {
        while !pack.is_full() {
            // Messages whose size is limited are checked piece by piece.
            if self.sizes.is_none()
                && self.first.iter().all(Option::is_none)
                && let Some(body) = &mut self.body
                && let Some(Poll::Pending) =
                    pack.append(|out, len_max, note| body.poll_encode(cx, out, len_max, note))
            {
                return Poll::Pending;
            }
            match ready!(Pin::new(&mut *self).poll_next(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(piece) => pack.push(&piece?),
            };
        }
        Poll::Pending
    }
}

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

impl Trailers {
    /// Creates trailers from the fields of a peer or an application.
    pub(crate) fn of(fields: HeaderMap) -> Self {
        if fields.is_empty() {
            return Self::None;
        }
        let is_ok = fields.len() == 1 && fields.get(&GRPC_STATUS).is_some_and(|status| status == "0");
        if is_ok { Self::GrpcOk } else { Self::Fields(Box::new(fields)) }
    }

    /// Returns the fields, if any.
    pub fn into_fields(self) -> Option<HeaderMap> {
        match self {
            Self::None => None,
            Self::GrpcOk => {
                let mut fields = HeaderMap::with_capacity(1);
                fields.insert(GRPC_STATUS, http::HeaderValue::from_static("0"));
                Some(fields)
            }
            Self::Fields(fields) => Some(*fields),
        }
    }

    /// Returns the code of a call with these trailers, given the HTTP status and fields of its headers.
    pub(crate) fn code(&self, status: u16, headers: &HeaderMap) -> Code {
        let stated = match self {
            Self::GrpcOk => return Code::Ok,
            Self::None => headers.get(GRPC_STATUS),
            Self::Fields(fields) => fields.get(GRPC_STATUS).or_else(|| headers.get(GRPC_STATUS)),
        };
        match stated {
            Some(stated) => stated_status(stated.as_bytes(), b"").0,
            None if (200..300).contains(&status) => Code::Ok,
            None => Code::from_http_status(status),
        }
    }
}

/// Returns the failure stated by headers or trailers of a response. For lack of space, other fields are ignored.
#[cold]
pub(crate) fn stated_failure(fields: &HeaderMap) -> Option<Status> {
    let message = fields.get("grpc-message").map(http::HeaderValue::as_bytes).unwrap_or_default();
    let (code, message) = stated_status(fields.get(GRPC_STATUS)?.as_bytes(), message);
    (code != Code::Ok).then(|| Status::new(code, message.into_owned()))
}

/// Returns whether the content type is gRPC, whose bodies are prefixed messages. `application/grpc-web` is not.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = headers.get(http::header::CONTENT_TYPE);
    content_type.is_some_and(|value| content_type::subtype(value.as_bytes()).is_some())
}

/// Appends response headers.
pub(crate) fn emit_headers(
    status: StatusCode,
    headers: &HeaderMap,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge> {
    fields.push(b":status", status.as_str().as_bytes(), Indexing::Insert);
    // `te` is only allowed in requests.
    metadata::emit_raw(headers, |name| name == "te", size_max, fields)
}

/// Appends trailers.
pub(crate) fn emit_trailers(
    trailers: &HeaderMap,
    size_max: usize,
    fields: &mut FieldList,
) -> Result<(), MetadataTooLarge> {
    let is_header_only = |name: &str| matches!(name, "te" | "content-length" | "content-type" | "trailer");
    metadata::emit_raw(trailers, is_header_only, size_max, fields)
}
