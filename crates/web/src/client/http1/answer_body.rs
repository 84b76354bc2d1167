//! Response bodies on HTTP/1.1 connections, and the reuse of the connections.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use thalweg_engine::Status;

use super::pool::{Busy, Pool};
use super::sending::Sent;
use crate::body::Body;

/// A response body. Reading it to its end returns the connection to the pool; dropping it earlier closes the
/// connection.
pub(super) struct AnswerBody {
    incoming: Incoming,
    /// `None` once returned.
    busy: Option<Busy>,
    pool: Arc<Pool>,
    sent: Arc<Sent>,
}

impl AnswerBody {
    pub(super) fn body(incoming: Incoming, busy: Busy, pool: Arc<Pool>, sent: Arc<Sent>) -> Body {
        let mut body = AnswerBody { incoming, busy: Some(busy), pool, sent };
        if body.incoming.is_end_stream() {
            body.give_back();
            return Body::empty();
        }
        Body::streaming(body)
    }

    /// Returns the connection to the pool. It is closed if the request is not completely sent: a call with a response
    /// need not send the rest.
    fn give_back(&mut self) {
        let Some(Busy { connection, .. }) = self.busy.take() else { return };
        if self.sent.is_whole() {
            self.pool.keep(connection);
        }
    }
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        Poll::Ready(match frame {
            Some(Ok(frame)) => Some(Ok(frame)),
            None => {
                self.give_back();
                None
            }
            Some(Err(error)) => {
                self.busy = None;
                Some(Err(self.pool.failed(&error, &self.sent)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if self.incoming.is_end_stream() {
            self.give_back();
        }
    }
}
