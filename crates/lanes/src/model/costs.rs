//! Costs in the model.

use super::lock::{LockCosts, NO_LOCK};

/// Times on one core, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Costs {
    /// Shortest and longest time until a sleeping core starts a task.
    pub(super) wake_ns: (u64, u64),
    /// Time until a core starts the next task.
    pub(super) task_ns: u64,
    /// A system call that reads what has arrived, and one that writes what waits.
    pub(super) read_ns: u64,
    pub(super) write_ns: u64,
    /// Costs of a call: the caller's code up to the lane's output, the driver's write, its read of the response, and
    /// the server's work.
    pub(super) caller_ns: u64,
    pub(super) client_send_ns: u64,
    pub(super) client_receive_ns: u64,
    pub(super) server_ns: u64,
    /// Time to copy a byte at each end.
    pub(super) byte_ps: u64,
    /// Sizes of a request and of a response.
    pub(super) call_bytes: u64,
    pub(super) response_bytes: u64,
    /// Bytes in transit that the server allows per connection, or [`UNLIMITED`].
    pub(super) window_bytes: u64,
    /// Time per byte on the client's link; 0 if it is never full.
    pub(super) link_byte_ps: u64,
    /// Maximum calls that a poll reads, and maximum bytes that it reads or writes.
    pub(super) turn_calls_max: usize,
    pub(super) turn_bytes_max: u64,
    /// Costs of a lane's lock.
    pub(super) lock: LockCosts,
    /// Time to connect, in addition to two round trips.
    pub(super) connect_ns: u64,
}

/// A window that is never full.
pub(super) const UNLIMITED: u64 = u64::MAX;

/// Thalweg: 3,500 instructions per call on the server and 4,300 on the client; a poll reads up to 128 KiB.
pub(in super::super) const OURS: Costs = Costs {
    wake_ns: (5_000, 25_000),
    task_ns: 200,
    read_ns: 2_000,
    write_ns: 5_000,
    caller_ns: 600,
    client_send_ns: 100,
    client_receive_ns: 400,
    server_ns: 900,
    byte_ps: 300,
    call_bytes: 60,
    response_bytes: 60,
    window_bytes: UNLIMITED,
    link_byte_ps: 0,
    turn_calls_max: 2_000,
    turn_bytes_max: 256 << 10,
    lock: NO_LOCK,
    connect_ns: 500_000,
};

/// gRPC C++: about 83,000 calls/s on one connection with one core per side. That is 12 µs per call and side, nearly all
/// of it on the connection. It reads 8 KiB at a time, with about 100 bytes per call.
pub(in super::super) const GRPC_CPP: Costs = Costs {
    caller_ns: 1_500,
    client_send_ns: 3_700,
    client_receive_ns: 6_300,
    server_ns: 11_000,
    call_bytes: 100,
    response_bytes: 100,
    turn_calls_max: 8,
    ..OURS
};

impl Costs {
    /// Returns the time to write these bytes, which complete this many requests.
    pub(super) fn writing(&self, calls: usize, bytes: u64) -> u64 {
        let calls_ns = calls as u64 * self.client_send_ns + bytes * self.byte_ps / 1_000;
        if bytes > 0 { self.write_ns + calls_ns } else { 0 }
    }

    /// Returns the time to read these bytes, and to handle the calls that they complete.
    pub(super) fn reading(&self, calls: usize, bytes: u64, call_ns: u64) -> u64 {
        let calls_ns = calls as u64 * call_ns + bytes * self.byte_ps / 1_000;
        if bytes > 0 { self.read_ns + calls_ns } else { 0 }
    }
}
