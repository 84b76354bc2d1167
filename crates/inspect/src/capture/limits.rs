//! Memory limits.

/// Memory limits for reading a capture. Anything beyond them is counted and reported.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum connections at once. Beyond it, those idle longest are given up. Default: 1024.
    pub connections_max: usize,
    /// Maximum open calls per connection. Others are not decoded. Default: 4096.
    pub calls_max: usize,
    /// Maximum bytes waiting for earlier ones in a direction, plus 64 per segment. Default: 1 MiB.
    pub buffered_bytes_max: usize,
    /// Maximum bytes of a header block or a frame other than DATA. Default: 256 KiB.
    pub frame_len_max: usize,
    /// Maximum size of decoded headers, counted as in HTTP/2. Default: 64 KiB.
    pub fields_len_max: usize,
    /// Maximum messages kept per direction of a call. Others are counted. Default: 10,000.
    pub messages_max: usize,
    /// Maximum message bytes kept for all open calls. Default: 256 MiB.
    pub kept_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            calls_max: 4096,
            buffered_bytes_max: 1 << 20,
            frame_len_max: 256 << 10,
            fields_len_max: 64 << 10,
            messages_max: 10_000,
            kept_bytes_max: 256 << 20,
        }
    }
}
