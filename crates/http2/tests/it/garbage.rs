//! No input causes a panic, and the output always consists of frames.

use crate::hpack_support::Random;
use crate::support::{Frames, OK, OwnedEvent, POST, Subject, TRAILERS, block, fields, id};
use bytes::Bytes;
use thalweg_http2::frame::{Flags, Kind, Setting};
use thalweg_http2::{Config, ErrorCode};

/// Frames of a peer that is mostly compliant.
fn frames(random: &mut Random, server: bool) -> Vec<u8> {
    let mut frames = if server { Frames::client() } else { Frames::server() };
    for stream in [1, 3, 5, 7] {
        frames = frames.headers(stream, random.one_in(3), if server { POST } else { OK });
    }
    for _ in 0..random.below(20) {
        let stream = 1 + 2 * random.below(5) as u32;
        let len = random.below(300);
        let bytes = random.bytes(len);
        let end = random.one_in(2);
        frames = match random.below(12) {
            0..=3 if server => frames.headers(stream, end, POST),
            0..=1 => frames.headers(stream, end, OK),
            2..=3 => frames.headers(stream, true, TRAILERS),
            4..=5 => frames.data(stream, end, &bytes),
            6 => frames.padded_data(stream, end, &bytes, random.below(256) as u8),
            7 => frames.rst_stream(stream, ErrorCode::Cancel),
            8 => frames.window_update(stream * random.below(2) as u32, random.below(100_000) as u32),
            9 => frames.settings(&[
                Setting::InitialWindowSize(random.below(100_000) as u32),
                Setting::HeaderTableSize(random.below(10_000) as u32),
            ]),
            10 => frames.ping(end, [1; 8]),
            _ if random.one_in(2) => frames,
            _ => {
                let (kind, flags) = (Kind::from(random.below(12) as u8), Flags(random.next() as u8));
                frames.frame(kind, flags, stream, &bytes)
            }
        };
    }
    frames.take()
}

/// Changes a few random places.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at.max(1)),
            _ => {
                let again = bytes[at..].to_vec();
                bytes.extend(again);
            }
        }
    }
}

#[track_caller]
fn check(seed: u64, server: bool) -> bool {
    let mut random = Random::new(seed);
    let make = if server { Subject::bare_server } else { Subject::bare_client };
    let mut subject = make(Config::default().stream_window(1000).output_target(500));
    if !server {
        for _ in 0..4 {
            subject.open();
        }
    }
    let mut bytes = frames(&mut random, server);
    mutate(&mut random, &mut bytes);
    let mut outcome = Ok(());
    while !bytes.is_empty() && outcome.is_ok() {
        let part: Vec<_> = bytes.drain(..=random.below(bytes.len())).collect();
        outcome = subject.feed_bytes(&part);
        // The driver responds to what it has seen, whatever the outcome.
        if let Some(OwnedEvent::Headers(stream, ..)) = subject.events.last() {
            let stream = id(*stream);
            let connection = &mut subject.connection;
            if server && connection.send_headers(stream, block(&fields(OK)), false).is_ok() {
                let body = Bytes::from(random.bytes(2000));
                connection.send_data(stream, [body], random.one_in(2)).unwrap();
            }
        }
        subject.sent();
    }
    assert_eq!(outcome.is_err(), subject.connection.is_closed());
    outcome.is_ok()
}

#[test]
fn random_input_causes_no_panic() {
    let survived = (0..20_000).filter(|&seed| check(seed, seed % 2 == 0)).count();
    // Some input is rejected and some accepted, so both branches of each check are covered.
    assert!((2000..18_000).contains(&survived), "{survived} of 20,000 connections survived");
}
