//! The run loop of a client on a blocking socket: sends a GET and prints the response until the server closes or stays
//! silent.
//!
//! ```text
//! cargo run -p thalweg-http2 --example blocking_client -- http://127.0.0.1:8080/
//! ```
//!
//! h2specd runs it for each of its cases.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use thalweg_http2::frame::MAX_FRAME_SIZE_MIN;
use thalweg_http2::{
    Block, Config, Connection, ConnectionError, ErrorCode, Event, FieldList, Indexing, Output, Tag,
};

/// Ends the connection after this much silence from the server.
const SILENCE_MAX: Duration = Duration::from_millis(1200);
/// Time for the server to receive the last frames and close.
const LINGER_MAX: Duration = Duration::from_millis(100);

fn main() -> io::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_default();
    let Some((authority, path)) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')) else {
        return Err(io::Error::other(format!("`{url}` is no URL such as http://127.0.0.1:8080/")));
    };
    let mut socket = TcpStream::connect(authority)?;
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    // The smallest frame size: a body is written to standard output as it arrives. h2specd, which tests this program,
    // rejects frames beyond 16,384 bytes whatever SETTINGS say.
    let config = Config::default().max_frame_size(MAX_FRAME_SIZE_MIN);
    let mut connection = Connection::client(config, now());
    let ended = converse(&mut connection, &mut socket, authority, &format!("/{path}"));

    // GOAWAY has been sent by now. Later input is read and discarded, because closing a socket with unread input resets
    // it, and the reset could overtake the GOAWAY.
    socket.shutdown(Shutdown::Write)?;
    socket.set_read_timeout(Some(LINGER_MAX))?;
    io::copy(&mut socket, &mut io::sink()).ok();
    ended
}

#[expect(clippy::disallowed_methods, reason = "this is the driver, who reads the clock for the connection")]
fn now() -> Instant {
    Instant::now()
}

fn converse(
    connection: &mut Connection,
    socket: &mut TcpStream,
    authority: &str,
    path: &str,
) -> io::Result<()> {
    let mut input = Vec::new();
    let mut is_request_sent = false;
    loop {
        let mut rest = &input[..];
        let outcome = take_events(connection, &mut rest);
        let used = input.len() - rest.len();
        input.drain(..used);
        // The limits of the server are unknown before its SETTINGS.
        if outcome.is_ok() && connection.settings_received() && !is_request_sent {
            send_request(connection, authority, path);
            is_request_sent = true;
        }
        flush(connection, socket)?;
        outcome.map_err(io::Error::other)?;

        let mut buffer = [0; 16 << 10];
        match socket.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => input.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                connection.close(ErrorCode::NoError, b"");
                return flush(connection, socket);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Handles the received events and prints the interesting ones.
fn take_events(connection: &mut Connection, input: &mut &[u8]) -> Result<(), ConnectionError> {
    while let Some(event) = connection.poll_event(input, now())? {
        match event {
            Event::Headers { .. } => println!("status {}", connection.fields().status().unwrap_or_default()),
            Event::CompleteMessage { bytes, .. } => {
                println!("status {}", connection.fields().status().unwrap_or_default());
                println!("{} bytes", bytes.len());
            }
            Event::Data { stream, bytes, .. } => {
                println!("{} bytes", bytes.len());
                connection.release(stream, bytes.len());
            }
            Event::Reset { cause, .. } => println!("reset with {}: {}", cause.code, cause.reason),
            _ => {}
        }
    }
    Ok(())
}

fn send_request(connection: &mut Connection, authority: &str, path: &str) {
    let mut headers = FieldList::new();
    for (name, value) in [(":method", "GET"), (":scheme", "http"), (":authority", authority), (":path", path)]
    {
        headers.push(name.as_bytes(), value.as_bytes(), Indexing::Literal);
    }
    if let Err(error) = connection.open(Tag::default(), Block { fixed: None, extra: &headers }, true) {
        println!("no request: {error}");
    }
}

fn flush(connection: &mut Connection, socket: &mut TcpStream) -> io::Result<()> {
    let mut output = Output::default();
    while connection.take_output(&mut output) {
        let mut bytes = Vec::new();
        output.copy_to(&mut bytes);
        socket.write_all(&bytes)?;
        output.advance(bytes.len());
    }
    Ok(())
}
