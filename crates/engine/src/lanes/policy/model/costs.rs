//! What things cost in the model.

/// Times of one core, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Costs {
    /// A core that sleeps takes up a task: the shortest and the longest.
    pub(super) wake_ns: (u64, u64),
    /// A core takes the next task.
    pub(super) task_ns: u64,
    /// A system call that reads what has arrived, and one that writes what waits.
    pub(super) read_ns: u64,
    pub(super) write_ns: u64,
    /// A call: the caller's own code up to the lane's output, the driver's writing, its reading of the answer, and all
    /// that the server does.
    pub(super) caller_ns: u64,
    pub(super) client_send_ns: u64,
    pub(super) client_receive_ns: u64,
    pub(super) server_ns: u64,
    /// Each end copies each byte.
    pub(super) byte_ps: u64,
    /// Of a call, each way.
    pub(super) call_bytes: u64,
    /// The most calls that one poll reads.
    pub(super) turn_calls_max: usize,
    /// Of a connection, beside two round trips.
    pub(super) connect_ns: u64,
}

/// Ours: 3,500 instructions a call on the server and 4,300 on the client; a poll reads up to 128 KiB.
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
    turn_calls_max: 2_000,
    connect_ns: 500_000,
};

/// gRPC C++: some 83,000 calls/s on one connection with a core at each end, that is 12 µs a call and side, nearly all
/// of it where the connection is. It reads 8 KiB at a time, some 100 bytes a call.
pub(in super::super) const GRPC_CPP: Costs = Costs {
    caller_ns: 1_500,
    client_send_ns: 3_700,
    client_receive_ns: 6_300,
    server_ns: 11_000,
    call_bytes: 100,
    turn_calls_max: 8,
    ..OURS
};

impl Costs {
    /// Writing so many requests.
    pub(super) fn writing(&self, calls: usize) -> u64 {
        let calls_ns = calls as u64 * (self.client_send_ns + self.call_bytes * self.byte_ps / 1_000);
        if calls > 0 { self.write_ns + calls_ns } else { 0 }
    }

    /// Reading and handling what one read brought.
    pub(super) fn reading(&self, calls: usize, call_ns: u64) -> u64 {
        let calls_ns = calls as u64 * (call_ns + self.call_bytes * self.byte_ps / 1_000);
        if calls > 0 { self.read_ns + calls_ns } else { 0 }
    }
}
