//! HTTP/1.1 connections with one call at a time: [`Http1`].

mod pool;
mod response_body;
mod sending;

use std::fmt;
use std::sync::Arc;

use http::header::{HOST, InvalidHeaderValue, USER_AGENT};
use http::{Request, Response};
use thalweg_engine::{ByteStreams, Status};

use crate::body::Body;
use pool::{BusyConnection, Pool};
use response_body::ResponseBody;
use sending::{SendProgress, SendingBody};

pub use pool::Http1Options;

/// An HTTP/1.1 client. Cheap to clone; clones share their connections.
///
/// Each call uses an idle connection or opens one. If an idle connection turns out to be closed before any of the call
/// was sent, the call uses another. A sent request is not repeated: the server may have processed it. Dropping a call
/// closes its connection.
#[derive(Clone)]
pub struct Http1 {
    pool: Arc<Pool>,
}

impl Http1 {
    /// Creates a client that connects through `streams`.
    ///
    /// # Errors
    /// If the authority is not a valid header value.
    pub fn new(streams: ByteStreams, options: Http1Options) -> Result<Http1, InvalidHeaderValue> {
        Ok(Http1 { pool: Arc::new(Pool::new(streams, options)?) })
    }

    /// Opens a connection unless an idle one exists.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub async fn connect(&self) -> Result<(), Status> {
        if self.pool.idle_count() == 0 {
            let connection = self.pool.open().await?;
            self.pool.put_back(connection);
        }
        Ok(())
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let pool = &self.pool;
        let permit = pool.permit().await?;
        let sent = Arc::new(SendProgress::default());
        let mut request = request.map(|body| SendingBody::new(body, Arc::clone(&sent)));
        request.headers_mut().insert(HOST, pool.host.clone());
        request.headers_mut().entry(USER_AGENT).or_insert_with(|| pool.user_agent.clone());
        loop {
            let (mut connection, is_new) = match pool.take_idle().await {
                Some(connection) => (connection, false),
                None => (pool.open().await?, true),
            };
            match connection.sender.try_send_request(request).await {
                Ok(response) => {
                    let busy = BusyConnection::new(connection, permit);
                    return Ok(response.map(|body| ResponseBody::body(body, busy, Arc::clone(pool), sent)));
                }
                Err(mut error) => match error.take_message() {
                    // The idle connection had closed unnoticed.
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(pool.failure_of(&error.into_error(), &sent)),
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
