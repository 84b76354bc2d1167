//! Response bodies on HTTP/1.1 connections, and the reuse of the connections.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use thalweg_engine::Status;

use super::pool::{BusyConnection, Pool};
use super::sending::SendProgress;
use crate::body::Body;

/// A response body. Reading it to its end returns the connection to the pool; dropping it earlier closes the
/// connection.
pub(super) struct ResponseBody {
    incoming: Incoming,
    /// `None` once returned.
    busy: Option<BusyConnection>,
    pool: Arc<Pool>,
    sent: Arc<SendProgress>,
}

impl ResponseBody {
    pub(super) fn body(
        incoming: Incoming,
        busy: BusyConnection,
        pool: Arc<Pool>,
        sent: Arc<SendProgress>,
    ) -> Body {
        let mut body = ResponseBody { incoming, busy: Some(busy), pool, sent };
        if body.incoming.is_end_stream() {
            body.return_connection();
            return Body::empty();
        }
        Body::streaming(body)
    }

    /// Returns the connection to the pool. It is closed if the request is not completely sent: a call with a response
    /// need not send the rest.
    fn return_connection(&mut self) {
        let Some(BusyConnection { connection, .. }) = self.busy.take() else { return };
        if self.sent.is_complete() {
            self.pool.put_back(connection);
        }
    }
}

impl http_body::Body for ResponseBody {
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
                self.return_connection();
                None
            }
            Some(Err(error)) => {
                self.busy = None;
                Some(Err(self.pool.failure_of(&error, &self.sent)))
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

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if self.incoming.is_end_stream() {
            self.return_connection();
        }
    }
}
