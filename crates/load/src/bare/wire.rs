//! What a protocol is to the bare client: bytes out for calls, and answers in the bytes that come.

/// The calls of one connection, in one protocol.
pub(super) trait Wire {
    /// What stands before the first call.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// A call begins now.
    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// Takes what came, tells each answer in it, and returns how many of the bytes are done with: those behind them
    /// are the beginning of something, and come again with what follows. What has to be said in return goes to `out`.
    fn received(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        answer: &mut dyn FnMut(Answer),
    ) -> Result<usize, WireError>;
}

/// A call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// When it began.
    pub(super) began_ns: u64,
    /// It brought what was asked for.
    pub(super) is_good: bool,
}

/// The peer broke the protocol, or ended the connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct WireError(pub(super) &'static str);
