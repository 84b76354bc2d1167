//! Memory of the server: per idle connection, and at the peak of a large message.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::bench::open_files;
use crate::bench::table::{self, Table};
use crate::job::{Failure, Log};
use crate::peers::{BuiltPeer, measure};
use crate::server::{Server, free_port};

/// Idle connections of one measurement.
const CONNECTIONS: usize = 4_000;
/// Opened before, so that what a server allocates once is not counted.
const CONNECTIONS_BEFORE: usize = 100;
/// Open files that this needs, here and in the server.
const FILES_OPEN: usize = CONNECTIONS + CONNECTIONS_BEFORE + 100;
/// For the server to do what it does after a connection fell idle.
const SETTLE: Duration = Duration::from_millis(1500);
const LARGE_MESSAGE_BYTES: usize = 4 << 20;

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    open_files::allow(FILES_OPEN)?;
    let mut rows = Vec::new();
    for peer in peers {
        let untouched = idle_connection(peer, false, log)?;
        let after_call = idle_connection(peer, true, log)?;
        let peak = large_message(peer, log)?;
        rows.push(vec![
            peer.name.to_owned(),
            table::grouped(untouched),
            table::grouped(after_call),
            format!("{:.1} MB ({:.1} ×)", peak / 1e6, peak / LARGE_MESSAGE_BYTES as f64),
        ]);
    }
    let heads = ["stack", "B per new connection", "B per idle one after a call", "peak of a 4 MiB echo"];
    Ok(vec![Table::new("Memory of the server (RSS):", &heads, rows)])
}

/// What one idle connection takes, in bytes.
fn idle_connection(peer: &BuiltPeer, with_call: bool, log: &Log) -> Result<f64, Failure> {
    let port = free_port()?;
    let server = Server::start(&peer.serve(port), port, log)?;
    let open = |count: usize| (0..count).map(|_| connection(port, with_call)).collect::<Result<Vec<_>, _>>();
    let first = open(CONNECTIONS_BEFORE)?;
    thread::sleep(SETTLE);
    let before = status_bytes(&server, "VmRSS")?;
    let others = open(CONNECTIONS)?;
    thread::sleep(SETTLE);
    let after = status_bytes(&server, "VmRSS")?;
    drop((first, others));
    server.stop()?;
    Ok((after - before) / CONNECTIONS as f64)
}

/// How much more memory than before the server had at most while it echoed a large message.
fn large_message(peer: &BuiltPeer, log: &Log) -> Result<f64, Failure> {
    let port = free_port()?;
    let server = Server::start(&peer.serve(port), port, log)?;
    measure(peer.load(port, "-n 100 -c 1 --warmup 0s"), log)?;
    // 5 sets the peak back to what is in use now (proc(5), clear_refs).
    fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5")?;
    let before = status_bytes(&server, "VmRSS")?;
    measure(peer.load(port, &format!("-n 1 -c 1 --size {LARGE_MESSAGE_BYTES} --warmup 0s")), log)?;
    let peak = status_bytes(&server, "VmHWM")?;
    server.stop()?;
    Ok(peak - before)
}

/// A connection whose SETTINGS both sides have acknowledged, and which has made a call if asked to.
fn connection(port: u16, with_call: bool) -> Result<TcpStream, Failure> {
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
    let (last_kind, last_flag) = if with_call { (HEADERS, END_STREAM) } else { (SETTINGS, ACK) };
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload)?;
        if head[3] == last_kind && head[4] & last_flag != 0 {
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
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
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
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x00);
        for text in [name, value] {
            // All are shorter than 127, so that the length is one byte (§5.1).
            block.push(text.len() as u8);
            block.extend(text.as_bytes());
        }
    }
    block
}

/// A line of `/proc/PID/status` that counts kB, in bytes.
pub(super) fn status_bytes(server: &Server, name: &str) -> Result<f64, Failure> {
    let text = fs::read_to_string(format!("/proc/{}/status", server.process_id()))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.map(|count| count * 1024.0).ok_or_else(|| Failure::failed(format!("/proc tells no {name}")))
}
