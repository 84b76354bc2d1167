//! Bounds for what a capture may make us hold.

/// Bounds for what a capture may make us hold. What is beyond them is counted, and said.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections that are followed at once; of more, those that were silent for longest are given up.
    pub connections_max: usize,
    /// Calls that are open at once on a connection; others are not followed.
    pub calls_max: usize,
    /// Bytes of one direction that wait for what comes before them; a segment counts for 64 besides.
    pub waiting_bytes_max: usize,
    /// Bytes of a header block, or of another frame than DATA.
    pub frame_len_max: usize,
    /// Bytes of a list of fields, as HTTP/2 counts them.
    pub fields_len_max: usize,
    /// Messages that are kept of a direction of a call; others are counted.
    pub messages_max: usize,
    /// Bytes of messages that are kept of all open calls.
    pub kept_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            calls_max: 4096,
            waiting_bytes_max: 1 << 20,
            frame_len_max: 256 << 10,
            fields_len_max: 64 << 10,
            messages_max: 10_000,
            kept_bytes_max: 256 << 20,
        }
    }
}
