//! The buffer budget: how windows bound the received bytes that are not released.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use thalweg_http2::frame::{Flags, Kind, Setting};
use thalweg_http2::{Config, Connection, ErrorCode, Event, Output, StreamId, Tag};

use crate::support::{Frames, POST, SentFrame, Subject, block, fields, id, start};

/// A server whose driver can release a request only when it is complete, and its client.
struct Uploads {
    client: Connection,
    server: Connection,
    now: Instant,
    /// Bytes received of each request.
    arrived: BTreeMap<StreamId, usize>,
    len: usize,
    buffered_max: usize,
    done: usize,
}

impl Uploads {
    fn new(config: Config, count: usize, len: usize) -> Self {
        let now = start();
        let client = Connection::client(Config::default(), now);
        let server = Connection::server(config, now);
        let mut uploads =
            Self { client, server, now, arrived: BTreeMap::new(), len, buffered_max: 0, done: 0 };
        // Lets the client learn how many streams it may open.
        while uploads.step() {}
        for _ in 0..count {
            let stream = uploads.client.open(Tag(0), block(&fields(POST)), false).unwrap();
            uploads.client.send_data(stream, [Bytes::from(vec![0; len])], true).unwrap();
        }
        uploads
    }

    /// Moves all bytes both ways. Returns whether there were any.
    fn step(&mut self) -> bool {
        let mut output = Output::default();
        let mut to_server = Vec::new();
        if self.client.take_output(&mut output) {
            output.copy_to(&mut to_server);
            output.advance(output.len());
        }
        let mut input = to_server.as_slice();
        while let Some(event) = self.server.poll_event(&mut input, self.now).unwrap() {
            let data = match event {
                Event::Data { stream, bytes, end_stream, .. } => Some((stream, bytes, end_stream)),
                Event::CompleteMessage { stream, bytes, .. } => Some((stream, bytes, true)),
                _ => None,
            };
            if let Some((stream, bytes, end_stream)) = data {
                let arrived = self.arrived.entry(stream).or_default();
                *arrived += bytes.len();
                if end_stream {
                    assert_eq!(*arrived, self.len);
                    self.arrived.remove(&stream);
                    self.done += 1;
                    self.server.release(stream, self.len);
                    self.server.reset(stream, ErrorCode::NoError);
                } else {
                    let missing = self.len - *arrived;
                    self.server.require_bytes(stream, missing);
                }
            }
            self.buffered_max = self.buffered_max.max(self.arrived.values().sum());
        }
        assert!(input.is_empty());
        let mut to_client = Vec::new();
        if self.server.take_output(&mut output) {
            output.copy_to(&mut to_client);
            output.advance(output.len());
        }
        let mut input = to_client.as_slice();
        while self.client.poll_event(&mut input, self.now).unwrap().is_some() {}
        !to_server.is_empty() || !to_client.is_empty()
    }
}

const BUDGET: usize = 2 << 20;

fn config() -> Config {
    Config::default().buffer_budget(BUDGET)
}

/// Creates a server whose driver releases nothing.
fn server_without_releases(config: Config) -> Subject {
    let mut subject = Subject::server(config);
    subject.releases = false;
    subject
}

/// Complete messages of many streams arrive, whatever their total size, and the buffered bytes stay near the budget.
/// They exceed it by the bytes in flight when windows were narrowed, and by the oldest message.
#[test]
fn uploads_complete_within_the_budget() {
    let check = |count: usize, len: usize| {
        let mut uploads = Uploads::new(config(), count, len);
        while uploads.step() {}
        assert_eq!(uploads.done, count, "{count} of {len} B: {} are left", uploads.arrived.len());
        let bound = 2 * (BUDGET + (4 << 20)) + len;
        assert!(
            uploads.buffered_max <= bound,
            "{count} of {len} B: {} B were buffered",
            uploads.buffered_max
        );
        assert_eq!(uploads.server.buffered_bytes(), 0);
    };
    check(1, 40 << 20);
    check(3, 4 << 20);
    check(100, 1 << 20);
    check(100, 300_000);
    check(100, 100);
    check(200, 4 << 20);
}

/// Windows become wide again when little is buffered.
#[test]
fn windows_narrow_above_half_the_budget_and_widen_below_an_eighth() {
    let mut subject = server_without_releases(config());
    let initial_windows = |subject: &mut Subject| {
        let settings = subject.sent().into_iter().filter(|frame| frame.kind == Kind::Settings);
        let entries = settings.flat_map(|frame| {
            frame.payload.as_chunks().0.iter().map(|&entry| Setting::parse(entry)).collect::<Vec<_>>()
        });
        entries.collect::<Vec<_>>()
    };
    let part = vec![0; 128 << 10];
    let mut frames = Frames::new();
    for stream in (1..).step_by(2).take(4) {
        frames = frames.open_request(stream);
        for _ in 0..7 {
            frames = frames.data(stream, false, &part);
        }
    }
    subject.feed(&mut frames).unwrap();
    assert_eq!(initial_windows(&mut subject), [Setting::InitialWindowSize(8 << 10)]);
    // No further change is sent before this one is acknowledged.
    subject.feed(&mut Frames::new().open_request(9).data(9, false, &part)).unwrap();
    assert_eq!(initial_windows(&mut subject), []);
    subject.feed(&mut Frames::new().frame(Kind::Settings, Flags::ACK, 0, b"")).unwrap();
    for stream in [1, 3, 5, 7, 9] {
        subject.connection.release(id(stream), 1 << 20);
    }
    // New streams have narrow windows; the connection's window is announced after 2 MiB.
    let narrow = vec![0; 8 << 10];
    let mut frames = Frames::new();
    for stream in (11..).step_by(2).take(250) {
        frames = frames.open_request(stream).data(stream, true, &narrow);
    }
    subject.feed(&mut frames).unwrap();
    assert_eq!(initial_windows(&mut subject), [Setting::InitialWindowSize(1 << 20)]);
}

/// A peer that ignores narrowed windows exceeds the connection's window, and then hits SETTINGS_TIMEOUT.
#[test]
fn peer_that_does_not_acknowledge_exceeds_the_connection_window() {
    let mut subject = server_without_releases(config());
    let part = vec![0; 128 << 10];
    let mut sent = 0;
    let ended = (1..).step_by(2).take(200).find_map(|stream| {
        let mut frames = Frames::new().open_request(stream);
        for _ in 0..8 {
            frames = frames.data(stream, false, &part);
        }
        sent += 1 << 20;
        subject.feed(&mut frames).err()
    });
    assert_eq!(ended.map(|error| error.code), Some(ErrorCode::FlowControlError));
    assert!(sent <= 2 * BUDGET + (14 << 20), "{sent} B were accepted");
    let mut silent = server_without_releases(config());
    let mut frames = Frames::new();
    for stream in (1..).step_by(2).take(4) {
        frames = frames.open_request(stream);
        for _ in 0..8 {
            frames = frames.data(stream, false, &part);
        }
    }
    silent.feed(&mut frames).unwrap();
    let late = silent.now + Duration::from_secs(11);
    let error = silent.connection.handle_timeout(late).unwrap_err();
    assert_eq!(error.code, ErrorCode::SettingsTimeout);
}

/// The oldest stream gets the window that its driver needs even with a budget of 0.
#[test]
fn oldest_stream_completes_with_a_zero_budget() {
    let config = Config::default().buffer_budget(0).stream_window(1000);
    let mut uploads = Uploads::new(config, 20, 50_000);
    while uploads.step() {}
    assert_eq!(uploads.done, 20);
}

/// A stream that has had its turn and waits for a message not yet sent does not block others.
#[test]
fn idle_stream_gives_up_its_turn() {
    let mut subject = server_without_releases(Config::default().buffer_budget(0).stream_window(1024));
    let (first, second) = (id(1), id(3));
    let large = vec![0; 5000];
    subject.feed(&mut Frames::new().open_request(1).open_request(3).data(1, false, &large[..1024])).unwrap();
    subject.connection.require_bytes(first, large.len() - 1024);
    subject.feed(&mut Frames::new().data(1, false, &large[1024..])).unwrap();
    subject.connection.release(first, large.len());
    // The prefix of the next message.
    subject.connection.require_bytes(first, 5);
    subject.sent();
    subject.feed(&mut Frames::new().data(3, false, &large[..1024])).unwrap();
    subject.connection.require_bytes(second, large.len() - 1024);
    let updates: Vec<u32> = subject
        .sent()
        .iter()
        .filter(|frame| frame.is(Kind::WindowUpdate, 3))
        .map(SentFrame::number)
        .collect();
    assert_eq!(updates, [1024], "no more at a time than a window");
}
