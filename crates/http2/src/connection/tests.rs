//! Tests of internal state: windows must be restored and memory freed.

use std::time::Instant;

use bytes::Bytes;

use super::Connection;
use crate::config::Config;
use crate::error::{ErrorCode, OpenError};
use crate::event::Event;
use crate::fields::{Block, FieldList, Indexing};
use crate::frame::{self, Flags, Kind};
use crate::output::Output;
use crate::stream::{StreamId, Tag};

fn start() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "no other way to get an Instant")]
    Instant::now()
}

fn list(pairs: &[(&str, &str)]) -> FieldList {
    let mut list = FieldList::new();
    for (name, value) in pairs {
        list.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    list
}

const POST: &[(&str, &str)] = &[(":method", "POST"), (":scheme", "http"), (":path", "/")];
const OK: &[(&str, &str)] = &[(":status", "200")];

fn open(client: &mut Connection, end_stream: bool) -> StreamId {
    client.open(Tag(0), Block { fixed: None, extra: &list(POST) }, end_stream).unwrap()
}

/// Moves all bytes one way, and releases DATA unless `keeps_data`. Returns whether there were any bytes.
fn pass(from: &mut Connection, to: &mut Connection, now: Instant, keeps_data: bool) -> bool {
    let (mut output, mut bytes) = (Output::default(), Vec::new());
    while from.take_output(&mut output) {
        output.copy_to(&mut bytes);
        output.advance(output.len());
    }
    let mut input = bytes.as_slice();
    while let Some(event) = to.poll_event(&mut input, now).unwrap() {
        if let Event::Data { stream, bytes, .. } = event
            && !keeps_data
        {
            to.release(stream, bytes.len());
        }
    }
    assert!(input.is_empty());
    !bytes.is_empty()
}

/// Unwritten output leaves together with later output, with large payloads in their places.
#[test]
fn take_more_output_merges_with_unwritten_output() {
    let now = start();
    let merged = |is_unwritten: bool| {
        let mut server = Connection::server(Config::default(), now);
        let mut client = Connection::client(Config::default(), now);
        let mut output = Output::default();
        assert!(!is_unwritten || server.take_output(&mut output));
        assert!(!is_unwritten || !server.take_more_output(&mut output), "there is no more");
        let stream = open(&mut client, true);
        pass(&mut client, &mut server, now, false);
        server.send_headers(stream, Block { fixed: None, extra: &list(OK) }, false).unwrap();
        server.send_data(stream, [Bytes::from(vec![1; 10_000]), Bytes::from(vec![2; 100])], true).unwrap();
        assert!(server.take_more_output(&mut output));
        let mut bytes = Vec::new();
        output.copy_to(&mut bytes);
        (bytes, output.len(), server.take_more_output(&mut output))
    };
    let (bytes, len, has_more) = merged(true);
    assert_eq!((bytes.len(), has_more), (len, false));
    assert_eq!(bytes, merged(false).0);
}

/// Each byte of the receiver's window is either available to the sender or waits to be announced.
#[track_caller]
fn check_window_is_complete(sender: &Connection, receiver: &Connection) {
    assert_eq!(receiver.receiving.window.outstanding(), 0);
    let unannounced = receiver.receiving.window.unannounced() as usize;
    assert_eq!(sender.sending.window.available() + unannounced, receiver.config.connection_window as usize);
}

/// RFC 9113 §5.2: the connection's window is complete again when its streams have ended in any way.
#[test]
fn windows_do_not_leak() {
    let now = start();
    let config = Config { stream_window: 10_000, connection_window: 70_000, ..Config::default() };
    let (mut client, mut server) = (Connection::client(config.clone(), now), Connection::server(config, now));
    for round in 0..300 {
        let keeps_data = round % 3 == 0;
        let stream = open(&mut client, false);
        client.send_data(stream, [Bytes::from(vec![0; 9000 + round])], false).unwrap();
        pass(&mut client, &mut server, now, keeps_data);
        server.send_headers(stream, Block { fixed: None, extra: &list(OK) }, false).unwrap();
        server.send_data(stream, [Bytes::from(vec![0; 25_000])], true).unwrap();
        match round % 5 {
            // DATA in flight meets a stream that either end has reset.
            0 => server.reset(stream, ErrorCode::Cancel),
            1 => client.reset(stream, ErrorCode::Cancel),
            // Padding, which the driver does not release.
            2 => {
                let payload = [&[200][..], &[1; 50], &[0; 200]].concat();
                frame::emit(Kind::Data, Flags::PADDED, stream, &payload, client.sending.output.buffer());
                client.sending.window.consume(payload.len());
            }
            _ => {}
        }
        if client.is_open(stream) {
            client.send_data(stream, [Bytes::from_static(b"the end")], true).unwrap();
        }
        while pass(&mut server, &mut client, now, keeps_data)
            | pass(&mut client, &mut server, now, keeps_data)
        {}
        client.reset(stream, ErrorCode::Cancel);
        server.reset(stream, ErrorCode::Cancel);
        while pass(&mut server, &mut client, now, keeps_data)
            | pass(&mut client, &mut server, now, keeps_data)
        {}
        check_window_is_complete(&client, &server);
        check_window_is_complete(&server, &client);
    }
    assert_eq!((client.active_streams(), server.active_streams()), (0, 0));
}

/// The same for the window of an open stream.
#[test]
fn stream_windows_do_not_leak() {
    let now = start();
    let (mut client, mut server) =
        (Connection::client(Config::default(), now), Connection::server(Config::default(), now));
    let stream = open(&mut client, false);
    for len in (0..3_000_000).step_by(77_777) {
        client.send_data(stream, [Bytes::from(vec![0; len])], false).unwrap();
        while pass(&mut client, &mut server, now, false) | pass(&mut server, &mut client, now, false) {}
        let sent = client.streams.find_ref(stream).unwrap().send_window.available();
        let received = server.streams.find_ref(stream).unwrap().receive_window;
        assert_eq!(received.outstanding(), 0);
        assert_eq!(sent + received.unannounced() as usize, 1 << 20);
    }
}

/// RFC 9113 §5.1.1
#[test]
fn open_fails_when_identifiers_are_exhausted() {
    let mut client = Connection::client(Config::default(), start());
    client.streams.use_id(StreamId::new(StreamId::MAX.get() - 2));
    assert_eq!(open(&mut client, true), StreamId::MAX);
    let headers = list(POST);
    let next = client.open(Tag(0), Block { fixed: None, extra: &headers }, true);
    assert_eq!(next, Err(OpenError::IdsExhausted));
    assert!(!client.can_open());
}

#[test]
fn shrink_frees_memory_of_an_idle_connection() {
    let now = start();
    let (mut client, mut server) =
        (Connection::client(Config::default(), now), Connection::server(Config::default(), now));
    for _ in 0..50 {
        let stream = open(&mut client, true);
        pass(&mut client, &mut server, now, false);
        server.send_headers(stream, Block { fixed: None, extra: &list(OK) }, false).unwrap();
        server.send_data(stream, [Bytes::from(vec![0; 50_000])], true).unwrap();
        while pass(&mut server, &mut client, now, false) | pass(&mut client, &mut server, now, false) {}
    }
    server.shrink();
    assert_eq!(server.sending.output.buffer().capacity(), 0);
    assert_eq!(server.receiving.gathered.capacity(), 0);
    assert_eq!(server.pending.capacity(), 0);
    // The connection still works.
    let stream = open(&mut client, true);
    pass(&mut client, &mut server, now, false);
    assert!(server.is_open(stream));
}
