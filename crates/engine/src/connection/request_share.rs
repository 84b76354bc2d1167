//! Memory and decoding time of a request that its connection cannot observe: [`RequestShare`].

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::decompression::Reader;
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
pub struct RequestShare(Option<Of>);

struct Of {
    connection: Arc<Connection>,
    /// `None` on an HTTP/1.1 connection.
    key: Option<SlotKey>,
    /// Bytes already accounted for elsewhere.
    known: usize,
    /// Bytes reported in addition to `known`.
    told: usize,
    reader: Reader,
}

impl RequestShare {
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
        Self(Some(Of { connection, key, known, told: 0, reader: Reader::default() }))
    }

    /// Returns whether the request is accounted for: more of it may arrive, or decoding takes long.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Sets the bytes that the request uses now, until the next call or drop. Small changes are not reported.
    pub fn hold(&mut self, len: usize) {
        let Some(of) = &mut self.0 else { return };
        let len = len.saturating_sub(of.known);
        if len == of.told || len != 0 && len.abs_diff(of.told) < CHANGE_LEN_MIN {
            return;
        }
        of.connection.lock().hold(of.key, of.told, len);
        of.told = len;
    }

    /// Waits until some of the request may be decoded. A task that decodes much yields to others on its thread.
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(of) => of.connection.decompression.poll_may(&mut of.reader, cx),
            None => Poll::Ready(()),
        }
    }

    /// Reports that `len` bytes were decoded.
    pub fn decoded(&mut self, len: usize) {
        if let Some(of) = &mut self.0 {
            of.connection.decompression.note(&mut of.reader, Some(len));
        }
    }
}

impl Drop for RequestShare {
    fn drop(&mut self) {
        self.hold(0);
    }
}

impl fmt::Debug for RequestShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.0.as_ref().map(|of| of.told);
        f.debug_struct("RequestShare").field("told", &told).finish_non_exhaustive()
    }
}
