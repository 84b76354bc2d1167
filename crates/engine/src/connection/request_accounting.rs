//! Memory and decoding time of a request that its connection cannot observe: [`RequestAccounting`].

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::decompression::DecompressionReader;
use super::shared::Connection;
use super::slot::SlotKey;

/// Changes smaller than this are not reported, in bytes: the lock would cost more than the precision is worth.
const CHANGE_LEN_MIN: usize = 4 << 10;

/// Accounts for a request's memory and decoding time that its connection cannot observe.
///
/// - Memory of the gathered or decoded body counts towards the server's budget.
/// - Decoding takes turns with the connection's other requests.
///
/// The default is for a small request that arrived whole: it reports nothing and never waits.
#[derive(Default)]
pub struct RequestAccounting(Option<AccountedRequest>);

struct AccountedRequest {
    connection: Arc<Connection>,
    /// `None` on an HTTP/1.1 connection.
    key: Option<SlotKey>,
    /// Bytes already accounted for elsewhere.
    known: usize,
    /// Bytes reported in addition to `known`.
    reported: usize,
    reader: DecompressionReader,
}

impl RequestAccounting {
    /// Creates the accounting of a call, of whose request `known` bytes are already counted.
    pub(crate) fn of_call(connection: &Arc<Connection>, key: SlotKey, known: usize) -> Self {
        Self::new(connection, Some(key), known)
    }

    /// Creates the accounting of an HTTP/1.1 request.
    pub(crate) fn of_http1(connection: &Arc<Connection>) -> Self {
        Self::new(connection, None, 0)
    }

    fn new(connection: &Arc<Connection>, key: Option<SlotKey>, known: usize) -> Self {
        let connection = Arc::clone(connection);
        Self(Some(AccountedRequest {
            connection,
            key,
            known,
            reported: 0,
            reader: DecompressionReader::default(),
        }))
    }

    /// Returns whether the request is accounted for: more of it may arrive, or decoding is slow.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Sets the bytes that the request uses now, until the next call or drop. Small changes are not reported.
    pub fn set_bytes(&mut self, len: usize) {
        let Some(request) = &mut self.0 else { return };
        let len = len.saturating_sub(request.known);
        if len == request.reported || len != 0 && len.abs_diff(request.reported) < CHANGE_LEN_MIN {
            return;
        }
        request.connection.lock().replace_request_bytes(request.key, request.reported, len);
        request.reported = len;
    }

    /// Waits until some of the request may be decoded. A task that decodes much yields to others on its thread.
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(request) => request.connection.decompression.poll_turn(&mut request.reader, cx),
            None => Poll::Ready(()),
        }
    }

    /// Reports that `len` bytes were decoded.
    pub fn decoded(&mut self, len: usize) {
        if let Some(request) = &mut self.0 {
            request.connection.decompression.note(&mut request.reader, Some(len));
        }
    }
}

impl Drop for RequestAccounting {
    fn drop(&mut self) {
        self.set_bytes(0);
    }
}

impl fmt::Debug for RequestAccounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reported = self.0.as_ref().map(|request| request.reported);
        f.debug_struct("RequestAccounting").field("reported", &reported).finish_non_exhaustive()
    }
}
