//! The network's round-trip time, as measured by the kernel.

use std::time::Duration;

/// Returns the shortest round trip of a TCP connection so far; `None` if unknown. On a new
/// connection it is the round trip of the handshake, which does not involve the application.
#[cfg(target_os = "linux")]
pub(super) fn shortest(socket: &socket2::Socket) -> Option<Duration> {
    use std::os::fd::AsRawFd;

    /// Offset of `tcpi_min_rtt`, in microseconds, in Linux's `struct tcp_info`. glibc's struct lacks it.
    const MIN_RTT_AT: usize = 148;
    const END: usize = MIN_RTT_AT + 4;

    let mut info = [0_u8; END];
    let mut len = END as libc::socklen_t;
    // SAFETY: the descriptor is open while `socket` is borrowed; the kernel writes at most `len` bytes, which `info`
    // has, and how many it wrote to `len`.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if outcome != 0 || (len as usize) < END {
        return None;
    }
    let microseconds = u32::from_ne_bytes(info[MIN_RTT_AT..END].try_into().ok()?);
    // The kernel's values for "not measured yet".
    (microseconds != u32::MAX && microseconds != 0).then(|| Duration::from_micros(microseconds.into()))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn shortest(_: &socket2::Socket) -> Option<Duration> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn tcp_has_a_round_trip_time_and_unix_sockets_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let round_trip = shortest(&near.into()).expect("the handshake has been timed");
        assert!(round_trip < Duration::from_secs(20), "{round_trip:?} within this machine");
        assert_eq!(shortest(&UnixStream::pair().unwrap().0.into()), None);
    }
}
