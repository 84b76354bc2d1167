//! What client and server take at a time.

/// Bytes of a message of the bare echo without a payload. An empty call's frames are 30 to 50 each way: the kernel does
/// the same for both.
pub(super) const MESSAGE_BYTES: usize = 60;
/// One `recv` takes at most this much.
pub(super) const READ_BYTES: usize = 64 << 10;
/// Events that one look brings at most: with 2 µs for each, the clock is looked at every 0.5 ms.
pub(super) const EVENTS_MAX: usize = 256;
