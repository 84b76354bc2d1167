//! Protocols of the bare client: they encode calls and find the responses in received bytes.

/// Calls of one connection, in one protocol.
pub(super) trait Wire {
    /// Appends the bytes sent before the first call.
    fn begin(&mut self, out: &mut Vec<u8>);

    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// Passes each response in `bytes` to `on_completed` and returns the number of bytes consumed. The rest is
    /// incomplete, and passed again with the bytes that follow. Bytes to send in return are appended to `out`.
    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        on_completed: &mut dyn FnMut(CompletedCall),
    ) -> Result<usize, WireError>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompletedCall {
    pub(super) began_ns: u64,
    /// Whether the response is as expected.
    pub(super) is_good: bool,
}

/// The peer violated the protocol or ended the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct WireError(pub(super) &'static str);
