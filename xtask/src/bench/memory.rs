use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::pair::allow_open_files;
use super::table::{Table, grouped};
use crate::failure::Result;
use crate::peers::{BuiltPeer, measure};
use crate::proc;
use crate::server::Server;

pub(super) const CONNECTIONS: usize = 10_000;
/// Connections opened before the measurement, so that one-time allocations of the server are not counted.
const CONNECTIONS_BEFORE: usize = 100;
/// Open files needed, here and in the server.
const FILES_OPEN: usize = CONNECTIONS + CONNECTIONS_BEFORE + 100;
/// Time for the server's work after a connection becomes idle.
pub(super) const SETTLE: Duration = Duration::from_secs(4);
const LARGE_MESSAGE_BYTES: usize = 4 << 20;

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    allow_open_files(FILES_OPEN)?;
    let row = |peer: &BuiltPeer| {
        let peak = large_message(peer)?;
        Ok(vec![
            peer.name.to_owned(),
            grouped(idle_connection(peer, false)?),
            grouped(idle_connection(peer, true)?),
            format!("{:.1} MB ({:.1} ×)", peak / 1e6, peak / LARGE_MESSAGE_BYTES as f64),
        ])
    };
    let rows = peers.iter().map(row).collect::<Result<_>>()?;
    let columns = ["stack", "B per new connection", "B per idle one after a call", "peak of a 4 MiB echo"];
    Ok(vec![Table::new("Memory of the server (RSS):", columns, rows)])
}

/// Memory of one idle connection in the server, in bytes.
fn idle_connection(peer: &BuiltPeer, with_call: bool) -> Result<f64> {
    let server = Server::start(|port| peer.serve(port))?;
    let open = |count: usize| {
        (0..count).map(|_| connection(server.port(), with_call)).collect::<Result<Vec<TcpStream>>>()
    };
    each_takes(&server, SETTLE, [CONNECTIONS_BEFORE, CONNECTIONS], open)
}

/// Memory of one connection in the server, in bytes. `before` connections are opened first and stay open.
pub(super) fn each_takes<C>(
    server: &Server,
    settle: Duration,
    [before, measured]: [usize; 2],
    open: impl Fn(usize) -> Result<C>,
) -> Result<f64> {
    let rss_with = |count: usize| -> Result<(f64, C)> {
        let connections = open(count)?;
        thread::sleep(settle);
        Ok((proc::memory(server.process_id(), "VmRSS")?, connections))
    };
    let (before, _first) = rss_with(before)?;
    let (after, _others) = rss_with(measured)?;
    Ok((after - before) / measured as f64)
}

/// Peak memory growth of the server while it echoes a large message.
fn large_message(peer: &BuiltPeer) -> Result<f64> {
    let server = Server::start(|port| peer.serve(port))?;
    let load = |flags: &str| measure(peer.load(server.port(), flags));
    load("-n 100 -c 1 --warmup 0s")?;
    // Writing 5 resets the peak to the current use (proc(5), clear_refs).
    fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5")?;
    let before = proc::memory(server.process_id(), "VmRSS")?;
    load(&format!("-n 1 -c 1 --size {LARGE_MESSAGE_BYTES} --warmup 0s"))?;
    Ok(proc::memory(server.process_id(), "VmHWM")? - before)
}

/// Opens a connection, waits until both sides have acknowledged SETTINGS, and makes a call if `with_call`.
fn connection(port: u16, with_call: bool) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(&[OPENING, if with_call { CALL } else { b"" }].concat())?;
    let last = if with_call { (HEADERS, END_STREAM) } else { (SETTINGS, ACK) };
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize])?;
        if head[3] == last.0 && head[4] & last.1 != 0 {
            return Ok(stream);
        }
    }
}

/// The preface, empty SETTINGS, and the acknowledgement of the server's (RFC 9113 §3.4, §6.5).
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";
/// HEADERS and DATA of an empty unary call on stream 1. Header fields use the static table only (RFC 7541 §6.1,
/// §6.2.2).
const CALL: &[u8] = b"\0\0\x57\x01\x04\0\0\0\x01\x83\x86\x04\x28/grpc.testing.BenchmarkService/UnaryCall\
    \x01\x09127.0.0.1\x0f\x10\x10application/grpc\0\x02te\x08trailers\0\0\x05\0\x01\0\0\0\x01\0\0\0\0\0";

const HEADERS: u8 = 0x1;
const SETTINGS: u8 = 0x4;
const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
