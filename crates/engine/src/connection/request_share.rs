//! What a request takes of its connection that nobody there sees: [`RequestShare`].

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::decompression::Reader;
use super::shared::Connection;
use super::slot::SlotKey;

/// A change by fewer bytes than that is not told: that would cost more than what it says.
const CHANGE_LEN_MIN: usize = 4 << 10;

/// What a request takes of its connection where that does not see it: memory for what was gathered or decoded of its
/// body, which counts for the server's budget, and time to decode it, in turns with the others of the connection.
///
/// The default is that of a request that came whole and small: it says nothing, and waits for nobody.
#[derive(Default)]
pub struct RequestShare(Option<Of>);

struct Of {
    connection: Arc<Connection>,
    /// `None` where another protocol has the connection.
    key: Option<SlotKey>,
    /// Bytes that count anyway.
    known: usize,
    /// Bytes that were told beside them.
    told: usize,
    reader: Reader,
}

impl RequestShare {
    /// Of a call, of whose request `known` bytes count already.
    pub(crate) fn of_call(connection: &Arc<Connection>, key: SlotKey, known: usize) -> Self {
        Self::new(connection, Some(key), known)
    }

    /// Of a request on a connection that another protocol has.
    pub(crate) fn of_foreign(connection: &Arc<Connection>) -> Self {
        Self::new(connection, None, 0)
    }

    fn new(connection: &Arc<Connection>, key: Option<SlotKey>, known: usize) -> Self {
        let connection = Arc::clone(connection);
        Self(Some(Of { connection, key, known, told: 0, reader: Reader::default() }))
    }

    /// Whether it is a request's of which more may be to come, or that takes long to decode.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// The request takes so many bytes now, until it is told otherwise, or this is dropped. Roughly: small changes
    /// don't count.
    pub fn hold(&mut self, len: usize) {
        let Some(of) = &mut self.0 else { return };
        let len = len.saturating_sub(of.known);
        if len == of.told || len != 0 && len.abs_diff(of.told) < CHANGE_LEN_MIN {
            return;
        }
        of.connection.lock().hold(of.key, of.told, len);
        of.told = len;
    }

    /// Ready when some of it may be decoded. Who decodes much waits for others of its thread first.
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(of) => of.connection.decompression.poll_may(&mut of.reader, cx),
            None => Poll::Ready(()),
        }
    }

    /// So many bytes were decoded.
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
