//! Memory of the server: per idle connection, and at the peak of a large message.

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

/// Idle connections of one measurement.
const CONNECTIONS: usize = 4_000;
/// Opened before, so that what a server allocates once is not counted.
const CONNECTIONS_BEFORE: usize = 100;
/// Open files that this needs, here and in the server.
const FILES_OPEN: usize = CONNECTIONS + CONNECTIONS_BEFORE + 100;
/// For the server to do what it does after a connection fell idle.
const SETTLE: Duration = Duration::from_millis(1500);
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
    let heads = ["stack", "B per new connection", "B per idle one after a call", "peak of a 4 MiB echo"];
    Ok(vec![Table::new("Memory of the server (RSS):", heads, rows)])
}

/// What one idle connection takes, in bytes.
fn idle_connection(peer: &BuiltPeer, with_call: bool) -> Result<f64> {
    let server = Server::start(|port| peer.serve(port))?;
    let open = |count: usize| {
        (0..count).map(|_| connection(server.port(), with_call)).collect::<Result<Vec<TcpStream>>>()
    };
    each_takes(&server, SETTLE, [CONNECTIONS_BEFORE, CONNECTIONS], open)
}

/// What one connection takes of the server's memory, in bytes: some are opened before, and stay open like the others.
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

/// How much more memory than before the server had at most while it echoed a large message.
fn large_message(peer: &BuiltPeer) -> Result<f64> {
    let server = Server::start(|port| peer.serve(port))?;
    let load = |flags: &str| measure(peer.load(server.port(), flags));
    load("-n 100 -c 1 --warmup 0s")?;
    // 5 sets the peak back to what is in use now (proc(5), clear_refs).
    fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5")?;
    let before = proc::memory(server.process_id(), "VmRSS")?;
    load(&format!("-n 1 -c 1 --size {LARGE_MESSAGE_BYTES} --warmup 0s"))?;
    Ok(proc::memory(server.process_id(), "VmHWM")? - before)
}

/// A connection whose SETTINGS both sides have acknowledged, and which has made a call if asked to.
fn connection(port: u16, with_call: bool) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    opening.extend(frame(SETTINGS, 0, 0, &[]));
    opening.extend(frame(SETTINGS, ACK, 0, &[]));
    if with_call {
        opening.extend(frame(HEADERS, END_HEADERS, 1, &request_block()));
        opening.extend(frame(DATA, END_STREAM, 1, &[0; 5]));
    }
    stream.write_all(&opening)?;
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

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const SETTINGS: u8 = 0x4;
const ACK: u8 = 0x1;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// RFC 9113 §4.1: 24 bits of length, type, flags, 31 bits of stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&[length[1], length[2], length[3], kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// The head of a gRPC request, each field a literal without indexing and without Huffman (RFC 7541 §6.2.2).
fn request_block() -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/grpc.testing.BenchmarkService/UnaryCall"),
        (":authority", "127.0.0.1"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    // All texts are shorter than 127, so that the length is one byte (§5.1).
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    fields.into_iter().flat_map(|(name, value)| [vec![0x00], text(name), text(value)].concat()).collect()
}
