//! Empty unary gRPC calls between two connections without a network, to count instructions:
//!
//! ```text
//! cargo build --release -p thalweg-http2 --example unary_calls
//! valgrind --tool=callgrind --callgrind-out-file=calls.out target/release/examples/unary_calls 10000 64
//! callgrind_annotate --inclusive=yes calls.out | grep unary_calls::
//! ```
//!
//! The arguments are the number of calls and the number in flight. `call` and `finish` are the client's work, `serve`
//! is the server's.

use std::sync::Arc;
use std::time::Instant;

use thalweg_http2::{Block, Config, Connection, Event, FieldList, FixedFields, Indexing, Output, Tag};

fn fixed(pairs: &[(&str, &str)]) -> Arc<FixedFields> {
    let mut list = FieldList::new();
    for (name, value) in pairs {
        list.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    FixedFields::new(list)
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let (calls, in_flight) = (arguments.next().unwrap_or(10_000), arguments.next().unwrap_or(64));
    #[expect(clippy::disallowed_methods, reason = "the driver reads the clock")]
    let now = Instant::now();
    let mut client = Connection::client(Config::default(), now);
    let mut server = Connection::server(Config::default(), now);
    let request = fixed(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/grpc.testing.BenchmarkService/UnaryCall"),
        (":authority", "localhost:50051"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("user-agent", "thalweg/0.1"),
    ]);
    let headers = fixed(&[(":status", "200"), ("content-type", "application/grpc")]);
    let trailers = fixed(&[("grpc-status", "0")]);
    let (mut output, mut wire) = (Output::default(), Vec::new());
    let mut finished = 0;
    while finished < calls {
        for _ in 0..in_flight {
            call(&mut client, &request);
        }
        transfer(&mut client, &mut output, &mut wire);
        serve(&mut server, &wire, now, &headers, &trailers);
        transfer(&mut server, &mut output, &mut wire);
        finished += finish(&mut client, &wire, now);
    }
    println!("{finished} calls");
}

fn transfer(from: &mut Connection, output: &mut Output, wire: &mut Vec<u8>) {
    wire.clear();
    while from.take_output(output) {
        output.copy_to(wire);
        output.advance(output.len());
    }
}

/// Opens a stream and sends an empty message: its five-byte prefix.
#[inline(never)]
fn call(client: &mut Connection, request: &Arc<FixedFields>) {
    let headers = Block { fixed: Some(request), extra: &FieldList::new() };
    let opened = client.open_with_message(Tag(7), headers, &[0; 5]);
    assert!(matches!(opened, Ok((_, true))), "fewer calls in flight than streams");
}

/// Responds to each request with headers, an empty message and trailers.
#[inline(never)]
fn serve(
    server: &mut Connection,
    mut input: &[u8],
    now: Instant,
    headers: &Arc<FixedFields>,
    trailers: &Arc<FixedFields>,
) {
    let none = FieldList::new();
    while let Some(event) = server.poll_event(&mut input, now).expect("an honest client") {
        if let Event::CompleteMessage { stream, .. } | Event::Data { stream, end_stream: true, .. } = event {
            let headers = Block { fixed: Some(headers), extra: &none };
            let trailers = Block { fixed: Some(trailers), extra: &none };
            assert_eq!(server.send_response(stream, headers, &[0; 5], trailers), Ok(true));
        }
    }
}

/// Receives the responses; returns the number of calls that have ended.
#[inline(never)]
fn finish(client: &mut Connection, mut input: &[u8], now: Instant) -> usize {
    let mut ended = 0;
    while let Some(event) = client.poll_event(&mut input, now).expect("an honest server") {
        ended += usize::from(matches!(event, Event::CompleteMessage { .. } | Event::Trailers { .. }));
    }
    ended
}
