//! The run loop of a connection, on blocking sockets with a thread each. Responds to every request with 200 and a line
//! of text.
//!
//! ```text
//! cargo run -p thalweg-http2 --example blocking_server -- 127.0.0.1:8080
//! ```

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use bytes::Bytes;
use thalweg_http2::{
    Block, Config, Connection, ErrorCode, Event, FieldList, FixedFields, Indexing, Output, StreamId,
};

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = TcpListener::bind(&address)?;
    println!("listening on {}", listener.local_addr()?);
    for socket in listener.incoming() {
        let socket = socket?;
        std::thread::spawn(move || {
            if let Err(error) = serve(socket) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this is the driver, who reads the clock for the connection")]
fn now() -> Instant {
    Instant::now()
}

fn serve(mut socket: TcpStream) -> io::Result<()> {
    let mut ok = FieldList::new();
    ok.push(b":status", b"200", Indexing::Insert);
    ok.push(b"content-type", b"text/plain", Indexing::Insert);
    let ok = FixedFields::new(ok);

    let mut connection = Connection::server(Config::default(), now());
    let mut output = Output::default();
    let mut input = Vec::new();
    loop {
        // Handle everything that has arrived, then write until only waiting is left.
        let mut ended = Vec::new();
        let mut rest = &input[..];
        let outcome = loop {
            match connection.poll_event(&mut rest, now()) {
                Ok(Some(
                    Event::Headers { stream, end_stream: true, .. }
                    | Event::CompleteMessage { stream, .. }
                    | Event::Trailers { stream, .. },
                )) => {
                    ended.push(stream);
                }
                Ok(Some(Event::Data { stream, bytes, end_stream, .. })) => {
                    connection.release(stream, bytes.len());
                    if end_stream {
                        ended.push(stream);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let used = input.len() - rest.len();
        input.drain(..used);
        for stream in ended {
            respond(&mut connection, stream, &ok);
        }
        while connection.take_output(&mut output) {
            let mut bytes = Vec::new();
            output.copy_to(&mut bytes);
            socket.write_all(&bytes)?;
            output.advance(bytes.len());
        }
        outcome.map_err(io::Error::other)?;
        if connection.is_drained() {
            return Ok(());
        }
        let mut buffer = [0; 16 << 10];
        let len = socket.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        input.extend_from_slice(&buffer[..len]);
    }
}

/// Responds to a request. It is no error if the stream is gone by now.
fn respond(connection: &mut Connection, stream: StreamId, ok: &std::sync::Arc<FixedFields>) {
    let headers = Block { fixed: Some(ok), extra: &FieldList::new() };
    if connection.send_headers(stream, headers, false).is_ok() {
        let body = Bytes::from_static(b"this is an HTTP/2 server\n");
        if connection.send_data(stream, [body], true).is_err() {
            connection.reset(stream, ErrorCode::InternalError);
        }
    }
}
