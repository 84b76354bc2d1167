//! Two connections, and a wire between them that splits the bytes at arbitrary points.

use crate::hpack_support::Random;
use crate::support::{Frames, OK, OwnedEvent, POST, Subject, TRAILERS, block, fields, id, tag};
use bytes::Bytes;
use thalweg_http2::{Config, ErrorCode};

/// Joins the parts of bodies in events, so that splits make no difference.
fn merged(events: &[OwnedEvent]) -> Vec<OwnedEvent> {
    let mut merged: Vec<OwnedEvent> = Vec::new();
    for event in events {
        match (merged.last_mut(), event) {
            (Some(OwnedEvent::Data(stream, end, bytes)), OwnedEvent::Data(next, next_end, more))
                if stream == next && !*end =>
            {
                bytes.extend(more);
                *end = *next_end;
            }
            // An end that arrived alone is not part of a body.
            _ => merged.push(event.clone()),
        }
    }
    merged
}

/// Returns a client's bytes: three requests, one with a body and trailers, one with a padded body, one cancelled.
fn requests() -> Vec<u8> {
    let mut client = Subject::bare_client(Config::default());
    let connection = &mut client.connection;
    let post = fields(POST);
    let first = connection.open(tag(1), block(&post), false).unwrap();
    connection.send_data(first, [Bytes::from(vec![b'a'; 300])], false).unwrap();
    connection.send_headers(first, block(&fields(TRAILERS)), true).unwrap();
    let second = connection.open(tag(2), block(&post), false).unwrap();
    let cancelled = connection.open(tag(3), block(&post), true).unwrap();
    connection.reset(cancelled, ErrorCode::Cancel);
    connection.ping(*b"pingpong");
    connection.send_data(second, [Bytes::from(vec![b'b'; 100])], false).unwrap();
    let mut bytes = client.sent_bytes();
    let mut rest =
        crate::support::Frames::new().padded_data(3, false, b"padded", 40).padded_data(3, true, b"", 5);
    bytes.extend(rest.take());
    bytes
}

/// Returns a server's bytes in response to three requests.
fn responses() -> Vec<u8> {
    let mut server = Subject::server(Config::default());
    server.feed(&mut crate::support::Frames::new().request(1).request(3).request(5)).unwrap();
    let connection = &mut server.connection;
    let ok = fields(OK);
    connection.send_headers(id(1), block(&fields(&[(":status", "103")])), false).unwrap();
    for stream in [3, 1] {
        connection.send_headers(id(stream), block(&ok), false).unwrap();
        connection.send_data(id(stream), [Bytes::from(vec![b'c'; 50])], false).unwrap();
    }
    connection.reset(id(5), ErrorCode::RefusedStream);
    connection.send_headers(id(3), block(&fields(TRAILERS)), true).unwrap();
    connection.send_data(id(1), [Bytes::from(vec![b'd'; 50])], true).unwrap();
    connection.drain(server.now);
    let mut bytes = crate::support::Frames::server().take();
    bytes.extend(server.sent_bytes());
    bytes
}

/// Feeds `bytes` whole, in two parts cut at every offset, and byte by byte, and checks that the events are the same.
#[track_caller]
fn check_cuts(subject: impl Fn() -> Subject, bytes: &[u8], events: usize) {
    let mut complete = subject();
    complete.feed_bytes(bytes).unwrap();
    let expected = merged(&complete.events);
    assert_eq!(expected.len(), events, "{expected:#?}");
    let sent = complete.sent_bytes();
    for cut in 0..=bytes.len() {
        let mut halved = subject();
        halved.feed_bytes(&bytes[..cut]).unwrap();
        halved.feed_bytes(&bytes[cut..]).unwrap();
        assert_eq!(merged(&halved.events), expected, "cut at {cut}");
        assert_eq!(halved.sent_bytes(), sent, "cut at {cut}");
    }
    let mut byte_by_byte = subject();
    for byte in bytes {
        byte_by_byte.feed_bytes(std::slice::from_ref(byte)).unwrap();
    }
    assert_eq!(merged(&byte_by_byte.events), expected);
}

#[test]
fn server_events_do_not_depend_on_how_input_is_split() {
    check_cuts(|| Subject::bare_server(Config::default()), &requests(), 7);
}

#[test]
fn client_events_do_not_depend_on_how_input_is_split() {
    let client = || {
        let mut client = Subject::bare_client(Config::default());
        for _ in 0..3 {
            client.open();
        }
        client
    };
    check_cuts(client, &responses(), 10);
}

#[test]
fn contiguous_data_frame_is_one_event() {
    let mut server = Subject::server(Config::default());
    let frames = crate::support::Frames::new().open_request(1).padded_data(1, false, &[1; 16_000], 200);
    server.feed(&mut { frames }).unwrap();
    assert_eq!(server.events.len(), 2);
    assert_eq!(server.events[1], OwnedEvent::Data(1, false, vec![1; 16_000]));
}

/// A client and a server with random operations, and a wire with random splits.
struct World {
    random: Random,
    client: Subject,
    server: Subject,
    /// All bytes in both directions.
    wire: Vec<u8>,
    /// Bytes that each end has yet to read.
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    bodies_sent: Vec<(u32, usize)>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed);
        let mut config = || {
            Config::default()
                .stream_window(1 + random.below(40_000) as u32)
                .connection_window(65_535 + random.below(10_000) as u32)
                .output_target(1 + random.below(40_000))
                .send_queue_low_water(1 + random.below(10_000))
                .header_table_size(random.below(5000) as u32)
                .max_concurrent_streams(1 + random.below(20) as u32)
        };
        let (client, server) = (Subject::bare_client(config()), Subject::bare_server(config()));
        World {
            random,
            client,
            server,
            wire: Vec::new(),
            to_server: Vec::new(),
            to_client: Vec::new(),
            bodies_sent: Vec::new(),
        }
    }

    /// Performs an operation on one end.
    fn act(&mut self) {
        match self.random.below(9) {
            0..=2 => {
                let end_stream = self.random.one_in(3);
                let opened = self.client.connection.open(tag(0), block(&fields(POST)), end_stream);
                if let (Ok(stream), false) = (opened, end_stream) {
                    let len = self.random.below(30_000);
                    self.bodies_sent.push((stream.get(), len));
                    let end_stream = !self.random.one_in(5);
                    let body = Bytes::from(vec![7; len]);
                    self.client.connection.send_data(stream, [body], end_stream).unwrap();
                }
            }
            3..=5 => {
                let requests = self.server.events.iter().filter_map(|event| match event {
                    OwnedEvent::Headers(stream, ..) => Some(*stream),
                    _ => None,
                });
                let streams: Vec<_> =
                    requests.filter(|&stream| self.server.connection.is_open(id(stream))).collect();
                if !streams.is_empty() {
                    let choice = self.random.below(streams.len());
                    self.respond(streams[choice]);
                }
            }
            6 => {
                let stream = 1 + 2 * self.random.below(60) as u32;
                let end = if self.random.one_in(2) { &mut self.client } else { &mut self.server };
                end.connection.reset(id(stream), ErrorCode::Cancel);
            }
            7 => {
                let end = if self.random.one_in(2) { &mut self.client } else { &mut self.server };
                end.connection.shrink();
            }
            _ => self.client.connection.ping([0; 8]),
        }
    }

    fn respond(&mut self, stream: u32) {
        let connection = &mut self.server.connection;
        let len = self.random.below(30_000);
        // Fails if the stream was answered before.
        if connection.send_headers(id(stream), block(&fields(OK)), false).is_ok() {
            connection.send_data(id(stream), [Bytes::from(vec![8; len])], false).unwrap();
            connection.send_headers(id(stream), block(&fields(TRAILERS)), true).unwrap();
        }
    }

    /// Moves some bytes each way. Returns whether there were any.
    fn transfer(&mut self) -> bool {
        self.to_server.extend(self.client.sent_bytes());
        self.to_client.extend(self.server.sent_bytes());
        let moved = !self.to_server.is_empty() || !self.to_client.is_empty();
        for (end, waiting) in
            [(&mut self.server, &mut self.to_server), (&mut self.client, &mut self.to_client)]
        {
            let len = if waiting.is_empty() { 0 } else { 1 + self.random.below(waiting.len()) };
            let part: Vec<_> = waiting.drain(..len).collect();
            self.wire.extend(&part);
            end.feed_bytes(&part).unwrap();
        }
        moved
    }

    /// Performs random operations, then ends all streams.
    fn run(mut self) -> World {
        for _ in 0..150 {
            self.act();
            self.transfer();
        }
        while self.transfer() {}
        // Cancels half-open streams, so that everything has ended.
        for stream in (1..2000).step_by(2) {
            self.client.connection.reset(id(stream), ErrorCode::Cancel);
        }
        while self.transfer() {}
        assert_eq!(self.client.connection.active_streams(), 0);
        assert_eq!(self.server.connection.active_streams(), 0);
        self
    }
}

/// The same bytes at the same times give the same events and the same bytes.
#[test]
fn same_seed_gives_same_events_and_bytes() {
    let mut events = 0;
    for seed in 0..20 {
        let (mut once, mut again) = (World::new(seed), World::new(seed));
        // Times differ between the two worlds, but not within each.
        again.client.now += std::time::Duration::from_secs(1);
        (once, again) = (once.run(), again.run());
        assert_eq!(once.wire, again.wire);
        assert_eq!(once.client.events, again.client.events);
        assert_eq!(once.server.events, again.server.events);
        events += once.server.events.len();
    }
    assert!(events > 1000, "only {events} events");
}

/// Bodies arrive completely or are reset; nothing stalls.
#[test]
fn random_exchanges_complete_without_stalls() {
    for seed in 1000..1300 {
        let world = World::new(seed).run();
        for &(stream, len) in &world.bodies_sent {
            let parts = world.server.events.iter().filter_map(|event| match event {
                OwnedEvent::Data(of, end, bytes) if *of == stream => Some((bytes.len(), *end)),
                _ => None,
            });
            let (received, ended) = parts.fold((0, false), |sum, part| (sum.0 + part.0, sum.1 | part.1));
            assert!(received <= len && (!ended || received == len), "seed {seed}, stream {stream}");
        }
        let responses =
            world.client.events.iter().filter(|event| matches!(event, OwnedEvent::Trailers(..))).count();
        assert!(responses > 0, "seed {seed}");
    }
}

/// Wherever DATA is split, placed data has the same effect as presented data.
#[test]
fn direct_data_has_the_effect_of_presented_data() {
    let frames = || {
        Frames::new()
            .open_request(1)
            .open_request(3)
            .padded_data(1, false, b"padded", 9)
            .data(3, false, b"other")
            .padded_data(1, true, b"the end", 3)
    };
    let bytes = frames().take();
    let mut complete = Subject::server(Config::default());
    complete.feed_bytes(&bytes).unwrap();
    for cut in 0..bytes.len() {
        for direct_max in [1, 3, usize::MAX] {
            let mut subject = Subject::server(Config::default());
            subject.feed_bytes(&bytes[..cut]).unwrap();
            let mut rest = &bytes[cut..];
            let mut direct = Vec::new();
            while let Some(expected) = subject.connection.expected_data() {
                assert_eq!(subject.connection.expected_data(), Some(expected), "the call has no side effect");
                let len = expected.len.min(direct_max);
                let ended = subject.connection.note_direct_data(len);
                direct.extend_from_slice(&rest[..len]);
                rest = &rest[len..];
                subject.connection.release(expected.stream, len);
                subject.events.push(OwnedEvent::Data(
                    expected.stream.get(),
                    ended.is_some(),
                    std::mem::take(&mut direct),
                ));
            }
            subject.feed_bytes(rest).unwrap();
            assert_eq!(merged(&subject.events), merged(&complete.events), "cut at {cut}");
            assert_eq!(subject.sent_bytes(), complete_output(&bytes), "cut at {cut}");
        }
    }
}

fn complete_output(bytes: &[u8]) -> Vec<u8> {
    let mut subject = Subject::server(Config::default());
    subject.feed_bytes(bytes).unwrap();
    subject.sent_bytes()
}

#[test]
fn no_data_is_expected_after_reset_or_close() {
    let mut subject = Subject::server(Config::default());
    let bytes = Frames::new().open_request(1).data(1, true, b"the whole").take();
    let (started, rest) = bytes.split_at(bytes.len() - 5);
    subject.feed_bytes(started).unwrap();
    assert_eq!(subject.connection.expected_data().map(|expected| expected.len), Some(5));
    subject.connection.reset(id(1), ErrorCode::Cancel);
    assert_eq!(subject.connection.expected_data(), None);
    assert_eq!(subject.connection.note_direct_data(2), None, "read after the reset");
    subject.feed_bytes(&rest[2..]).unwrap();
    subject.feed(&mut Frames::new().ping(true, [0; 8])).unwrap();
    let mut subject = Subject::server(Config::default());
    subject.feed_bytes(started).unwrap();
    subject.connection.close(ErrorCode::NoError, b"");
    assert_eq!(subject.connection.expected_data(), None);
    assert_eq!(subject.connection.note_direct_data(5), None);
}
