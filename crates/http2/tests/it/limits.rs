//! Bounds on the cost of a peer, and heavy legitimate use that must not exceed them.

use std::time::Duration;

use crate::support::{Frames, OK, OwnedEvent, POST, Subject, TRAILERS, block, fields, id};
use thalweg_http2::frame::{Flags, Kind, Setting};
use thalweg_http2::{Config, ConnectionError, ErrorCode, Limits};

/// Feeds `frames` repeatedly, in one batch of input, until the connection ends or `times` is reached. Returns how often
/// they were accepted.
fn count_accepted(subject: &mut Subject, times: u32, mut frames: impl FnMut(Frames, u32) -> Frames) -> u32 {
    let mut builder = Frames::new();
    let mut batch = Vec::new();
    let mut ends = Vec::new();
    for n in 0..times {
        builder = frames(builder, n);
        batch.extend(builder.take());
        ends.push(batch.len());
    }
    let mut rest = &batch[..];
    loop {
        let outcome = subject.connection.poll_event(&mut rest, subject.now);
        // A peer that reads replies does not let them accumulate.
        subject.sent_bytes();
        match outcome {
            Ok(Some(_)) => {}
            Ok(None) => return times,
            Err(error) => {
                assert_eq!(error.code, ErrorCode::EnhanceYourCalm, "{error}");
                // Frames count as consumed when they are taken, so the last one is the one too many.
                let consumed = batch.len() - rest.len();
                return ends.iter().take_while(|&&end| end < consumed).count() as u32;
            }
        }
    }
}

/// Checks how often a server accepts `frames`, repeated in one batch.
#[track_caller]
fn check(frames: impl FnMut(Frames, u32) -> Frames, passed: u32) {
    let limits = Limits::default().paid_control_frames_max(0).glitches(1000);
    let mut subject = Subject::server(Config::default().limits(limits));
    subject.feed(&mut Frames::new().open_request(1)).unwrap();
    // The `Frames` fed here have a separate encoder, whose table must not differ from that of the first one.
    assert_eq!(count_accepted(&mut subject, 2000, frames), passed);
}

#[test]
fn floods_of_control_frames_end_the_connection() {
    check(|f, _| f.ping(false, [0; 8]), 1000);
    check(|f, _| f.ping(true, [0; 8]), 1000);
    check(|f, _| f.settings(&[]), 1000);
    check(|f, _| f.frame(Kind::Settings, Flags::ACK, 0, b""), 1000);
    check(|f, _| f.frame(Kind::Priority, Flags::NONE, 9, &[0; 5]), 1000);
    check(|f, _| f.frame(Kind::Unknown(99), Flags::NONE, 0, b""), 1000);
    check(|f, _| f.window_update(1, 1), 1000);
    check(|f, _| f.window_update(0, 1), 1000);
    check(|f, _| f.goaway(0, ErrorCode::NoError), 1000);
    check(|f, _| f.data(1, false, b""), 1000);
    check(|f, _| f.data(1, false, b"tiny"), 1000);
    check(|f, _| f.padded_data(1, false, b"", 3), 1000);
}

/// One glitch more for each further time that a frame moves the windows of all streams.
#[test]
fn repeated_initial_window_changes_cost_a_glitch_each() {
    let moves = [Setting::InitialWindowSize(0), Setting::InitialWindowSize(65_535)].repeat(16);
    check(move |f, _| f.settings(&moves), 1000 / 32);
    check(|f, _| f.settings(&[Setting::InitialWindowSize(0), Setting::MaxFrameSize(16_384)]), 1000);
}

/// Frames that do no work earn nothing: a server's informational responses, and DATA on a forgotten stream.
#[test]
fn frames_without_work_earn_no_credit() {
    let limits = || Limits::default().glitches(1000);
    let mut client = Subject::client(Config::default().limits(limits()));
    let stream = client.open().get();
    let passed = count_accepted(&mut client, 5000, |f, _| f.headers(stream, false, &[(":status", "103")]));
    assert_eq!(passed, 1002, "1,000, and two that the request has paid for");

    let mut server = Subject::server(Config::default().limits(limits()));
    let mut frames = (0..100).fold(Frames::new(), |frames, n| frames.request(1 + 2 * n));
    server.feed(&mut frames).unwrap();
    (0..100).for_each(|n| server.connection.reset(id(1 + 2 * n), ErrorCode::Cancel));
    server.sent();
    // 1,000, and those that the requests have paid for.
    let passed = count_accepted(&mut server, 5000, |f, _| f.data(1, false, &[0; 5]).ping(false, [0; 8]));
    assert!((1000..2000).contains(&passed), "{passed} were accepted");
}

#[test]
fn data_frames_of_five_bytes_are_not_glitches() {
    check(|f, _| f.data(1, false, &[0; 5]), 2000);
}

/// MadeYouReset (CVE-2025-8671): the peer provokes stream errors, which free streams.
#[test]
fn provoked_stream_errors_end_the_connection() {
    let next = |n: u32| 3 + 2 * n;
    // A WINDOW_UPDATE costs a token of its own besides the ten.
    check(|f, n| f.request(next(n)).window_update(next(n), (1 << 31) - 1), 90);
    check(|f, n| f.request(next(n)).window_update(next(n), 0), 90);
    check(|f, n| f.request(next(n)).data(next(n), true, b"half closed"), 100);
    check(|f, n| f.headers(next(n), true, TRAILERS), 100);
}

/// Header blocks of 16 KiB decoded only to keep the HPACK table in sync: each costs 64.
#[test]
fn useless_header_blocks_are_charged_by_length() {
    // `:method: GET`, as often as it fits.
    let block = [0x82; 16_384];
    let headers = move |f: Frames, stream| f.frame(Kind::Headers, Flags::END_HEADERS, stream, &block);
    // On a stream that the peer has reset: also a stream error, which costs 10.
    check_closed(|f| f.rst_stream(1, ErrorCode::Cancel), |f| headers(f, 1), 13);
    // On a stream forgotten long ago: also a token.
    let forgotten = |mut f: Frames| {
        for n in 0..40 {
            f = f.request(3 + 2 * n).rst_stream(3 + 2 * n, ErrorCode::Cancel);
        }
        f
    };
    check_closed(forgotten, |f| headers(f, 3), 15);
    // On a new stream: the list is too large, which is a stream error.
    let mut stream = 1;
    let next = |f| {
        stream += 2;
        headers(f, stream)
    };
    check_closed(|f| f, next, 13);
}

/// A field of two octets may refer to an entry of 4 KB, which is copied into the table each time.
#[test]
fn copied_names_are_charged() {
    let mut insert = vec![0x40, 0x7f, 0xa1, 0x1e];
    insert.extend([b'a'; 4000]);
    insert.push(0);
    // Index 62 with incremental indexing and an empty value: 3,000 × 4,000 bytes are 732 × 16 KiB.
    let named = [[0x7e, 0x00]; 3000].concat();
    let mut stream = 1;
    let next = move |f: Frames| {
        stream += 2;
        let block = [&insert[..], &named].concat();
        f.frame(Kind::Headers, Flags::END_HEADERS.with_if(true, Flags::END_STREAM), stream, &block)
    };
    check_closed(|f| f, next, 1);
}

/// The driver is notified of decoded headers, including refused ones, but not of cached ones.
#[test]
fn decode_budget_spent_is_raised_per_64_kib() {
    let check = |fields: usize, streams_max: u32, distinct: bool, expected: usize| {
        let config = Config::default().max_concurrent_streams(streams_max);
        let mut subject = Subject::server(config);
        let mut frames = Frames::new();
        for n in 0..100 {
            let number = if distinct { n.to_string() } else { String::new() };
            let headers = [POST, &vec![("a", ""); fields], &[("b", &number)]].concat();
            frames = frames.headers(1 + 2 * n, true, &headers);
        }
        subject.feed(&mut frames).unwrap();
        let raised = subject.events.iter().filter(|event| **event == OwnedEvent::DecodeBudgetSpent).count();
        assert_eq!(raised, expected, "{fields} fields");
    };
    // 13,472 bytes each: five exceed 64 KiB.
    check(400, 200, true, 20);
    check(400, 10, true, 20);
    // 1,592 bytes each: once in 42.
    check(40, 200, true, 2);
    check(40, 200, false, 0);

    // Trailers count too, after cached headers.
    let mut client = Subject::client(Config::default());
    let mut frames = Frames::new();
    for _ in 0..10 {
        let stream = client.open().get();
        let trailers = [TRAILERS, &[("a", ""); 400]].concat();
        frames = frames.headers(stream, false, OK).headers(stream, true, &trailers);
    }
    client.feed(&mut frames).unwrap();
    assert_eq!(client.events.iter().filter(|event| **event == OwnedEvent::DecodeBudgetSpent).count(), 2);
}

/// Checks how often a server accepts `frames` after `first`, with 1,000 glitches.
#[track_caller]
fn check_closed(first: impl FnOnce(Frames) -> Frames, mut frames: impl FnMut(Frames) -> Frames, passed: u32) {
    let limits = Limits::default().paid_control_frames_max(0).glitches(1000);
    let mut subject = Subject::server(Config::default().limits(limits));
    subject.feed(&mut first(Frames::new().open_request(1))).unwrap();
    assert_eq!(count_accepted(&mut subject, 40, |f, _| frames(f)), passed);
}

#[test]
fn glitches_are_regained_with_time() {
    let limits = Limits::default().paid_control_frames_max(0);
    let mut subject = Subject::server(Config::default().limits(limits));
    for _ in 0..100 {
        subject.advance_time(Duration::from_secs(1));
        assert_eq!(count_accepted(&mut subject, 330, |f, _| f.ping(false, [0; 8])), 330);
    }
}

/// BDP probes, keepalive, a window update per message: the work that these respond to pays for them.
#[test]
fn control_frames_with_work_are_not_glitches() {
    let mut subject = Subject::server(Config::default());
    let mut builder = Frames::new();
    for n in 0..30_000 {
        let stream = 1 + 2 * n;
        let frames = builder.open_request(stream).data(stream, true, &[0; 5]);
        let mut frames = frames.ping(false, [0; 8]).window_update(0, 7).window_update(stream, 7);
        subject.feed(&mut frames).unwrap();
        subject.connection.send_headers(id(stream), block(&fields(OK)), false).unwrap();
        subject.connection.send_data_in_place(id(stream), 5, true, |out| out.extend([0; 5])).unwrap();
        subject.sent();
        builder = frames;
    }
}

/// A peer provokes replies and does not read them.
#[test]
fn unread_replies_are_bounded() {
    let limits = Limits::default().queued_replies_max(500);
    let mut subject = Subject::server(Config::default().limits(limits));
    for _ in 0..500 {
        subject.feed(&mut Frames::new().ping(false, [0; 8])).unwrap();
    }
    let error = subject.feed(&mut Frames::new().ping(false, [0; 8])).unwrap_err();
    assert_eq!(error.code, ErrorCode::EnhanceYourCalm);
}

/// CVE-2024-27316
#[test]
fn continuations_are_bounded() {
    #[track_caller]
    fn check(limits: Limits, continuations: usize, len: usize, expected: Result<(), ErrorCode>) {
        let mut subject = Subject::server(Config::default().limits(limits));
        let mut frames = Frames::new();
        let block = frames.block(POST);
        // Literals with an empty name and value, without indexing, are malformed, which is only a stream error.
        let filler = vec![0u8; len / 3 * 3];
        frames = frames.frame(Kind::Headers, Flags::END_STREAM, 1, &block);
        for n in 1..=continuations {
            let flags = Flags::NONE.with_if(n == continuations, Flags::END_HEADERS);
            frames = frames.frame(Kind::Continuation, flags, 1, &filler);
        }
        let outcome = subject.feed(&mut frames).map_err(|error: ConnectionError| error.code);
        assert_eq!(outcome, expected);
    }
    let calm = Err(ErrorCode::EnhanceYourCalm);
    check(Limits::default(), 8, 30, Ok(()));
    check(Limits::default(), 9, 30, calm);
    check(Limits::default(), 3, 16_384, Ok(()));
    check(Limits::default(), 4, 16_384, calm);
    check(Limits::default().header_block_len_max(1 << 20), 8, 16_384, Ok(()));
    check(Limits::default().header_block_len_max(60_000), 3, 16_384, Ok(()));
    check(Limits::default().header_block_len_max(60_000), 4, 16_384, calm);
}

/// A block too large to buffer is rejected by its frame header, before its bytes arrive.
#[test]
fn large_header_frames_are_rejected_by_their_frame_header() {
    let check = |len: u32, expected: Result<(), ErrorCode>| {
        let mut subject = Subject::server(Config::default());
        let header = [&len.to_be_bytes()[1..], &[1, 4, 0, 0, 0, 1, 0x82]].concat();
        assert_eq!(subject.feed_bytes(&header).map_err(|error| error.code), expected, "{len} B");
    };
    check(64 << 10, Ok(()));
    check((64 << 10) + 1, Err(ErrorCode::EnhanceYourCalm));
}

/// CVE-2023-44487: streams that start and end within a batch.
#[test]
fn rapid_reset_ends_the_connection() {
    let rapid = |f: Frames, n| f.request(1 + 2 * n).rst_stream(1 + 2 * n, ErrorCode::Cancel);
    let mut subject = Subject::server(Config::default());
    assert_eq!(count_accepted(&mut subject, 20_000, rapid), 40 * 256);
    // Fewer streams, fewer resets, down to a floor.
    let mut few = Subject::server(Config::default().max_concurrent_streams(10));
    assert_eq!(count_accepted(&mut few, 20_000, rapid), 1000);
    // The bucket refills with time.
    let mut patient = Subject::server(Config::default());
    for n in 0..100 {
        patient.advance_time(Duration::from_secs(1));
        let next = |f, m| rapid(f, 1024 * n + m);
        assert_eq!(count_accepted(&mut patient, 1024, next), 1024);
    }
}

/// Streams that outlived a batch were in use, and answered ones were served.
#[test]
fn cancelling_served_streams_costs_nothing() {
    #[track_caller]
    fn check(responded: bool, batches: bool) {
        let mut subject = Subject::server(Config::default());
        let mut builder = Frames::new();
        for n in 0..30_000 {
            let stream = 1 + 2 * n;
            let frames = builder.request(stream);
            builder = frames;
            let request = builder.take();
            let mut input = request.as_slice();
            assert!(subject.connection.poll_event(&mut input, subject.now).unwrap().is_some());
            if responded {
                subject.connection.send_headers(id(stream), block(&fields(OK)), false).unwrap();
            }
            if batches {
                assert_eq!(subject.connection.poll_event(&mut input, subject.now), Ok(None));
            }
            builder = builder.rst_stream(stream, ErrorCode::Cancel);
            let reset = builder.take();
            assert!(subject.connection.poll_event(&mut &reset[..], subject.now).unwrap().is_some());
            subject.sent_bytes();
        }
    }
    check(true, false);
    check(false, true);
}

/// A client may open more streams than allowed until it has seen SETTINGS: a thousand are refused without being
/// counted.
#[test]
fn refusals_before_settings_ack_are_not_charged() {
    let limits = Limits::default().glitches(0);
    let mut subject = Subject::bare_server(Config::default().max_concurrent_streams(1).limits(limits));
    let frames = Frames::new().raw(thalweg_http2::frame::PREFACE).settings(&[]);
    let mut frames = (0..100).fold(frames, |frames, n| frames.request(1 + 2 * n));
    subject.feed(&mut frames).unwrap();
    let refused = subject.sent().iter().filter(|frame| frame.kind == Kind::RstStream).count();
    assert_eq!(refused, 99);
    subject.feed(&mut frames.frame(Kind::Settings, Flags::ACK, 0, b"")).unwrap();
    let error = subject.feed(&mut Frames::new().headers(201, true, POST)).unwrap_err();
    assert_eq!(error.code, ErrorCode::EnhanceYourCalm);
}
