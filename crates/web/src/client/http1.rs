//! Connections of HTTP/1.1, each with one call at a time: [`Http1`].

mod answer_body;
mod pool;
mod sending;

use std::fmt;
use std::sync::Arc;

use http::header::{HOST, InvalidHeaderValue, USER_AGENT};
use http::{Request, Response};
use thalweg_engine::{ByteStreams, Status};

use crate::body::Body;
use answer_body::AnswerBody;
use pool::{Busy, Pool};
use sending::{Sending, Sent};

pub use pool::Http1Options;

/// Calls over HTTP/1.1. Cheap to clone; clones share their connections.
///
/// A call takes a connection that is idle, or opens one. One that broke while it was idle is passed over, if nothing of
/// the call has left: then it takes another. What left is not sent again: nobody knows what the server has done with
/// it. A call that is dropped closes its connection.
#[derive(Clone)]
pub struct Http1 {
    pool: Arc<Pool>,
}

impl Http1 {
    /// To where `streams` connect.
    ///
    /// # Errors
    /// When the authority can't be in a header.
    pub fn new(streams: ByteStreams, options: Http1Options) -> Result<Http1, InvalidHeaderValue> {
        Ok(Http1 { pool: Arc::new(Pool::new(streams, options)?) })
    }

    /// Opens a connection, unless there is an idle one.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub async fn connect(&self) -> Result<(), Status> {
        if self.pool.idle_count() == 0 {
            let connection = self.pool.open().await?;
            self.pool.keep(connection);
        }
        Ok(())
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let pool = &self.pool;
        let permit = pool.permit().await?;
        let sent = Arc::new(Sent::default());
        let mut request = request.map(|body| Sending::new(body, Arc::clone(&sent)));
        request.headers_mut().insert(HOST, pool.host.clone());
        request.headers_mut().entry(USER_AGENT).or_insert_with(|| pool.user_agent.clone());
        loop {
            let (mut connection, is_new) = match pool.take_idle().await {
                Some(connection) => (connection, false),
                None => (pool.open().await?, true),
            };
            match connection.sender.try_send_request(request).await {
                Ok(answer) => {
                    let busy = Busy::new(connection, permit);
                    return Ok(answer.map(|body| AnswerBody::body(body, busy, Arc::clone(pool), sent)));
                }
                Err(mut error) => match error.take_message() {
                    // It had ended, and nobody had seen it yet.
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(pool.failed(&error.into_error(), &sent)),
                },
            }
        }
    }
}

impl fmt::Debug for Http1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http1")
            .field("streams", &self.pool.streams)
            .field("options", &self.pool.options)
            .field("idle", &self.pool.idle_count())
            .finish_non_exhaustive()
    }
}
