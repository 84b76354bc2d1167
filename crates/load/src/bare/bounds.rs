//! Limits of client and server.

/// Bytes of a message of the bare echo, without payload. The frames of an empty gRPC call take 30 to 50 bytes each way;
/// the kernel's work is the same for both.
pub(super) const MESSAGE_BYTES: usize = 60;
/// Maximum bytes of one `recv`.
pub(super) const READ_BYTES: usize = 64 << 10;
/// Maximum events of one `epoll_wait`. At 2 µs per event, the clock is read every 0.5 ms.
pub(super) const EVENTS_MAX: usize = 256;
