//! Bodies of requests and responses: [`Body`].

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use thalweg_engine::raw::{OutgoingBody, Piece, Trailers};
use thalweg_engine::{self as engine, RawBody};
use vocabulary::Status;

use crate::BoxError;
use crate::downcast::take_as;
use crate::status::{to_engine, to_tonic};

/// Body of a request or a response.
///
/// Two kinds of bodies need no box: a single piece with its end, as in unary calls, and a body received from a
/// connection. They pass unchanged through services that do not touch bodies, and a single piece is sent in one step.
#[derive(Debug, Default)]
pub struct Body(BodyKind);

#[derive(Debug, Default)]
enum BodyKind {
    #[default]
    Empty,
    Single(Piece, Trailers),
    Received(RawBody),
    /// A message whose prefix was returned: the rest of the piece, and the rest of the body.
    Split(Bytes, RawBody),
    /// Fails before the first piece.
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "only servers use it"))]
    Failed(Box<Status>),
    Other(vocabulary::body::Body),
}

impl Body {
    /// Creates an empty body.
    pub const fn empty() -> Self {
        Self(BodyKind::Empty)
    }

    /// Wraps any body.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        match take_as::<Self, B>(body) {
            Ok(body) => body,
            Err(body) if body.is_end_stream() => Self::empty(),
            // tonic's body unwraps one of its own type.
            Err(body) => Self(BodyKind::Other(vocabulary::body::Body::new(body))),
        }
    }

    /// Wraps any body with any type of pieces.
    pub(crate) fn from_any<B>(body: B) -> Self
    where
        B: http_body::Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        match take_as::<Self, B>(body) {
            Ok(body) => body,
            Err(body) => Self::new(IntoBytesBody { body }),
        }
    }

    /// Creates a body from a single piece and its trailers.
    pub(crate) fn single(piece: impl Into<Piece>, trailers: Trailers) -> Self {
        Self(BodyKind::Single(piece.into(), trailers))
    }

    /// Creates a body that fails before its first piece.
    #[cfg_attr(not(feature = "server"), allow(dead_code, reason = "only servers use it"))]
    pub(crate) fn failed(status: Status) -> Self {
        Self(BodyKind::Failed(Box::new(status)))
    }

    /// Takes the whole body if it is contiguous and already available; leaves an empty body.
    pub(crate) fn take_single(&mut self) -> Option<(Bytes, Trailers)> {
        match &mut self.0 {
            BodyKind::Empty => Some((Bytes::new(), Trailers::None)),
            BodyKind::Received(body) => body.take_complete(),
            BodyKind::Split(..) | BodyKind::Failed(_) | BodyKind::Other(_) => None,
            BodyKind::Single(piece, trailers) => {
                let whole = (piece.as_contiguous()?.clone(), std::mem::take(trailers));
                self.0 = BodyKind::Empty;
                Some(whole)
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.0 {
            BodyKind::Empty => Poll::Ready(None),
            BodyKind::Single(piece, trailers) => {
                if let Some(bytes) = piece.take_part() {
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                let fields = std::mem::take(trailers).into_fields();
                self.0 = BodyKind::Empty;
                Poll::Ready(fields.map(|fields| Ok(Frame::trailers(fields))))
            }
            BodyKind::Received(body) => {
                let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
                let frame = frame.map(|frame| frame.map_err(to_tonic));
                if let Some(Ok(frame)) = &frame
                    && let Some(piece) = frame.data_ref()
                    && is_large(piece)
                {
                    let mut rest = piece.clone();
                    let prefix = rest.split_to(PREFIX_LEN);
                    self.0 = BodyKind::Split(rest, std::mem::take(body));
                    return Poll::Ready(Some(Ok(Frame::data(prefix))));
                }
                Poll::Ready(frame)
            }
            BodyKind::Split(rest, body) => {
                let frame = Frame::data(std::mem::take(rest));
                self.0 = BodyKind::Received(std::mem::take(body));
                Poll::Ready(Some(Ok(frame)))
            }
            BodyKind::Failed(_) => match std::mem::take(&mut self.0) {
                BodyKind::Failed(status) => Poll::Ready(Some(Err(*status))),
                _ => Poll::Ready(None),
            },
            BodyKind::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Empty => true,
            BodyKind::Single(piece, trailers) => piece.is_empty() && matches!(trailers, Trailers::None),
            BodyKind::Received(body) => body.is_end_stream(),
            BodyKind::Split(..) | BodyKind::Failed(_) => false,
            BodyKind::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Empty => SizeHint::with_exact(0),
            BodyKind::Single(piece, _) => SizeHint::with_exact(piece.len() as u64),
            BodyKind::Received(body) => body.size_hint(),
            BodyKind::Split(..) | BodyKind::Failed(_) => SizeHint::default(),
            BodyKind::Other(body) => body.size_hint(),
        }
    }
}

impl From<Body> for vocabulary::body::Body {
    fn from(body: Body) -> Self {
        match body.0 {
            BodyKind::Other(body) => body,
            kind => Self::new(Body(kind)),
        }
    }
}

pin_project! {
    /// A body with pieces converted to [`Bytes`].
    struct IntoBytesBody<B> {
        #[pin]
        body: B,
    }
}

impl<B: http_body::Body> http_body::Body for IntoBytesBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(self.project().body.poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| frame.map_data(|mut piece| piece.copy_to_bytes(piece.remaining())))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl OutgoingBody for Body {
    fn status(error: Status) -> engine::Status {
        to_engine(error)
    }

    fn take_complete(&mut self) -> Option<(Piece, Trailers)> {
        match std::mem::take(&mut self.0) {
            BodyKind::Single(piece, trailers) => Some((piece, trailers)),
            kind => {
                self.0 = kind;
                self.take_single().map(|(bytes, trailers)| (bytes.into(), trailers))
            }
        }
    }

    #[cfg(own_vocabulary)]
    fn poll_encode(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut engine::Chain,
        len_max: usize,
        note: &mut dyn FnMut(usize),
    ) -> Option<Poll<()>> {
        match &mut self.0 {
            BodyKind::Other(body) => body.poll_encode(cx, out, len_max, note),
            _ => None,
        }
    }
}

impl From<RawBody> for Body {
    fn from(body: RawBody) -> Self {
        Self(BodyKind::Received(body))
    }
}

const PREFIX_LEN: usize = vocabulary::codec::HEADER_SIZE;
/// Size in bytes from which a message is worth two frames.
const LARGE_LEN_MIN: usize = 16 << 10;

/// Returns true if the first message of `piece` is to be returned in two frames: its prefix, then the rest. tonic's
/// `Streaming` copies frames into a buffer and, at the prefix, reserves space for a whole message in addition to what
/// is buffered. A large message already in the buffer would be copied again.
fn is_large(piece: &[u8]) -> bool {
    match piece {
        [_, len @ .., _] if piece.len() > LARGE_LEN_MIN => {
            len.first_chunk().is_some_and(|len| u32::from_be_bytes(*len) as usize >= LARGE_LEN_MIN)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    /// Checks the frame lengths of a body received as one piece.
    fn check(lens: &[usize], expected: &[usize]) {
        let messages = lens.iter().flat_map(|&len| {
            let len32 = u32::try_from(len).unwrap().to_be_bytes();
            [&[0][..], &len32, &vec![7; len]].concat()
        });
        let wire: Bytes = messages.collect();
        let mut body = Body::from(RawBody::complete(wire.clone(), Trailers::GrpcOk));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut frames = Vec::new();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut cx) {
            match frame.unwrap().into_data() {
                Ok(bytes) => frames.push(bytes),
                Err(trailers) => assert_eq!(trailers.into_trailers().unwrap()["grpc-status"], "0"),
            }
        }
        assert_eq!(frames.concat(), wire);
        assert_eq!(frames.iter().map(Bytes::len).collect::<Vec<_>>(), expected);
        assert!(body.is_end_stream());
    }

    #[test]
    fn prefix_of_large_message_is_its_own_frame() {
        check(&[0], &[5]);
        check(&[LARGE_LEN_MIN - 1], &[LARGE_LEN_MIN + 4]);
        check(&[LARGE_LEN_MIN], &[5, LARGE_LEN_MIN]);
        check(&[1 << 20, 3], &[5, (1 << 20) + 8]);
        check(&[3, 1 << 20], &[(1 << 20) + 13]);
    }
}
