//! Sending: frames, windows, fairness, backpressure.

use crate::support::{
    Blocks, Frames, OK, OwnedEvent, POST, SentFrame, Subject, TRAILERS, block, fields, id, tag,
};
use bytes::Bytes;
use thalweg_http2::frame::{Flags, Kind, PREFACE, Setting};
use thalweg_http2::{Config, ErrorCode, OpenError, SendError};

/// Creates a server with these requests, whose response headers have been sent.
fn server_with_open_responses(config: Config, streams: &[u32]) -> Subject {
    let mut subject = Subject::server(config);
    for &stream in streams {
        subject.feed(&mut Frames::new().request(stream)).unwrap();
        subject.connection.send_headers(id(stream), block(&fields(OK)), false).unwrap();
    }
    subject.sent();
    subject
}

/// Frames of a peer with large windows.
fn wide_windows() -> Frames {
    Frames::new().settings(&[Setting::InitialWindowSize(1 << 30)]).window_update(0, 1 << 30)
}

/// Returns the DATA frames: stream, length, END_STREAM.
fn data_frames(sent: &[SentFrame]) -> Vec<(u32, usize, bool)> {
    let data = sent.iter().filter(|frame| frame.kind == Kind::Data);
    data.map(|frame| (frame.stream, frame.payload.len(), frame.ends_stream())).collect()
}

fn zeros(len: usize) -> Bytes {
    Bytes::from(vec![0; len])
}

#[test]
fn settings_and_preface_come_first() {
    let mut client = Subject::bare_client(Config::default());
    assert!(client.sent_bytes().starts_with(thalweg_http2::frame::PREFACE));
    let mut client = Subject::bare_client(Config::default());
    let mut server = Subject::bare_server(Config::default().stream_window(65_535));
    let settings = |subject: &mut Subject| {
        let sent = subject.sent();
        assert!(sent[0].is(Kind::Settings, 0) && sent[1].is(Kind::WindowUpdate, 0));
        assert_eq!(sent[1].number(), (4 << 20) - 65_535);
        let (entries, _) = sent[0].payload.as_chunks();
        entries.iter().map(|&entry| Setting::parse(entry)).collect::<Vec<_>>()
    };
    let window = Setting::InitialWindowSize(1 << 20);
    let sizes = [Setting::MaxFrameSize(128 << 10), Setting::MaxHeaderListSize(16 << 10)];
    assert_eq!(settings(&mut client), [Setting::EnablePush(0), window, sizes[0], sizes[1]]);
    assert_eq!(settings(&mut server), [Setting::MaxConcurrentStreams(256), sizes[0], sizes[1]]);
}

#[test]
fn unary_response_is_three_frames() {
    let mut subject = server_with_open_responses(Config::default(), &[1]);
    assert_eq!(subject.connection.send_data_in_place(id(1), 5, false, |out| out.extend([0; 5])), Ok(true));
    subject.connection.send_headers(id(1), block(&fields(TRAILERS)), true).unwrap();
    assert_eq!(subject.connection.active_streams(), 0);
    let sent = subject.sent();
    assert_eq!(data_frames(&sent), [(1, 5, false)]);
    assert!(sent[1].is(Kind::Headers, 1) && sent[1].ends_stream());
    assert_eq!(sent.len(), 2);
    let late = subject.connection.send_data(id(1), [zeros(1)], true);
    assert_eq!(late, Err(SendError::UnknownStream));
}

/// Sends a complete response with one call.
fn send_response(subject: &mut Subject, message: usize) -> Result<bool, SendError> {
    let (headers, trailers) = (fields(OK), fields(TRAILERS));
    subject.connection.send_response(id(1), block(&headers), &vec![0; message], block(&trailers))
}

#[test]
fn complete_response_has_the_bytes_of_its_parts() {
    let mut parts = Subject::server(Config::default());
    let mut complete = Subject::server(Config::default());
    for subject in [&mut parts, &mut complete] {
        subject.feed(&mut Frames::new().request(1)).unwrap();
    }
    parts.connection.send_headers(id(1), block(&fields(OK)), false).unwrap();
    parts.connection.send_data(id(1), [zeros(5)], false).unwrap();
    parts.connection.send_headers(id(1), block(&fields(TRAILERS)), true).unwrap();
    assert_eq!(send_response(&mut complete, 5), Ok(true));
    assert_eq!(complete.sent_bytes(), parts.sent_bytes());
    assert_eq!(complete.connection.active_streams(), 0);
    assert_eq!(send_response(&mut complete, 5), Err(SendError::UnknownStream));
}

#[test]
fn message_that_would_have_to_wait_is_not_sent_with_its_headers() {
    let narrow = Setting::InitialWindowSize(4);
    let mut server = Subject::server(Config::default());
    server.feed(&mut Frames::new().settings(&[narrow]).request(1)).unwrap();
    server.sent();
    assert_eq!(send_response(&mut server, 5), Ok(false));
    assert_eq!(server.sent(), []);
    assert_eq!(send_response(&mut server, 4), Ok(true));

    let mut client = Subject::client(Config::default());
    client.feed(&mut Frames::new().settings(&[narrow])).unwrap();
    client.sent();
    let headers = fields(POST);
    let queued = client.connection.open_with_message(tag(0), block(&headers), &[0; 5]);
    assert_eq!(queued, Ok((id(1), false)));
    let sent = client.connection.open_with_message(tag(0), block(&headers), &[0; 4]);
    assert_eq!(sent, Ok((id(3), true)));
    assert_eq!(data_frames(&client.sent()), [(3, 4, true)]);
    assert_eq!(client.connection.send_data(id(3), [zeros(1)], true), Err(SendError::HalfClosed));
    assert_eq!(client.connection.send_data(id(1), [zeros(4)], true), Ok(()));
    assert_eq!(data_frames(&client.sent()), [(1, 4, true)]);
}

#[test]
fn small_messages_of_one_stream_share_a_frame() {
    let mut subject = server_with_open_responses(Config::default(), &[1, 3]);
    let send = |subject: &mut Subject, stream, byte, end| {
        let sent = subject.connection.send_data_in_place(id(stream), 2, end, |out| out.extend([byte; 2]));
        assert_eq!(sent, Ok(true));
    };
    send(&mut subject, 1, b'a', false);
    send(&mut subject, 1, b'b', false);
    send(&mut subject, 3, b'c', false);
    send(&mut subject, 1, b'd', false);
    send(&mut subject, 1, b'e', true);
    let sent = subject.sent();
    assert_eq!(data_frames(&sent), [(1, 4, false), (3, 2, false), (1, 4, true)]);
    assert_eq!([&sent[0].payload[..], &sent[2].payload], [b"aabb", b"ddee"]);
    // A frame in flight is not extended, and no frame exceeds the peer's limit.
    send(&mut subject, 3, b'f', false);
    subject.sent();
    subject.connection.send_data(id(3), [zeros(16_384)], false).unwrap();
    send(&mut subject, 3, b'g', true);
    assert_eq!(data_frames(&subject.sent()), [(3, 16_384, false), (3, 2, true)]);
}

#[test]
fn send_data_in_place_declines_data_that_would_have_to_wait() {
    #[track_caller]
    fn declined(subject: &mut Subject, len: usize) {
        let untouched = |_: &mut Vec<u8>| panic!("nothing may be encoded");
        assert_eq!(subject.connection.send_data_in_place(id(1), len, true, untouched), Ok(false));
    }
    let mut subject = server_with_open_responses(Config::default(), &[1]);
    declined(&mut subject, 16_385);
    subject.feed(&mut Frames::new().settings(&[Setting::InitialWindowSize(9)])).unwrap();
    declined(&mut subject, 10);
    subject.connection.send_data(id(1), [zeros(10)], false).unwrap();
    declined(&mut subject, 1);
    let mut full = server_with_open_responses(Config::default().output_target(100), &[1]);
    full.connection.send_data(id(1), [zeros(100)], false).unwrap();
    declined(&mut full, 1);
    full.sent();
    assert_eq!(full.connection.send_data_in_place(id(1), 0, false, |_| ()), Ok(true));
    assert_eq!(full.sent(), []);
}

#[test]
fn small_response_waits_for_one_frame_of_a_large_one() {
    let mut subject = server_with_open_responses(Config::default(), &[1, 3]);
    subject.feed(&mut wide_windows()).unwrap();
    subject.connection.send_data(id(1), [zeros(4 << 20)], true).unwrap();
    subject.sent_bytes();
    // Nothing has been written when the small response arrives, so it waits in the queue.
    subject.connection.send_data(id(3), [zeros(20_000)], true).unwrap();
    let next = crate::support::parse_frames(&subject.sent_bytes());
    let small: Vec<_> = data_frames(&next).into_iter().take(4).collect();
    assert_eq!(small, [(1, 16_384, false), (3, 16_384, false), (1, 16_384, false), (3, 3616, true)]);
}

#[test]
fn streams_take_turns() {
    let mut subject = server_with_open_responses(Config::default(), &[1, 3, 5]);
    subject.feed(&mut wide_windows()).unwrap();
    subject.sent();
    for stream in [1, 3, 5] {
        subject.connection.send_data(id(stream), [zeros(40_000)], true).unwrap();
    }
    let sent = subject.sent();
    assert_eq!(
        data_frames(&sent).iter().map(|frame| frame.0).collect::<Vec<_>>(),
        [1, 3, 5, 1, 3, 5, 1, 3, 5]
    );
    assert!(data_frames(&sent)[6..].iter().all(|frame| frame.2));
    assert_eq!(subject.connection.active_streams(), 0);
}

#[test]
fn control_frames_precede_queued_data() {
    let mut subject = server_with_open_responses(Config::default(), &[1]);
    subject.feed(&mut wide_windows()).unwrap();
    subject.sent();
    subject.connection.send_data(id(1), [zeros(1 << 20)], true).unwrap();
    subject.feed(&mut Frames::new().ping(false, [7; 8])).unwrap();
    assert_eq!(crate::support::parse_frames(&subject.sent_bytes())[0].kind, Kind::Ping);
}

#[test]
fn output_ends_near_its_target() {
    let mut subject = server_with_open_responses(Config::default().output_target(50_000), &[1]);
    subject.feed(&mut wide_windows()).unwrap();
    subject.sent();
    subject.connection.send_data(id(1), [zeros(1 << 20)], true).unwrap();
    let first = subject.sent_bytes().len();
    assert!((50_000..50_000 + 16_393).contains(&first), "{first}");
    assert!(subject.connection.wants_write());
    subject.sent();
    assert!(!subject.connection.wants_write());
}

/// Responses to a peer that does not read wait in their streams, not in the output.
#[test]
fn responses_above_the_output_target_stay_queued() {
    let mut subject = server_with_open_responses(Config::default().output_target(100), &[1, 3]);
    subject.connection.send_data(id(1), [zeros(100)], true).unwrap();
    subject.connection.send_headers(id(3), block(&fields(TRAILERS)), true).unwrap();
    assert_eq!(subject.connection.active_streams(), 1);
    assert!(subject.connection.has_queued(id(3)) && subject.connection.queued(id(3)) == 0);
    let again = subject.connection.send_headers(id(3), block(&fields(TRAILERS)), true);
    assert_eq!(again, Err(SendError::HalfClosed));
    let sent = subject.sent();
    assert!(sent[1].is(Kind::Headers, 3) && sent[1].ends_stream());
    assert_eq!(subject.connection.active_streams(), 0);
}

#[test]
fn trailers_wait_for_the_data_before_them() {
    let mut subject = server_with_open_responses(Config::default(), &[1]);
    subject.connection.send_data(id(1), [zeros(65_536)], false).unwrap();
    subject.connection.send_headers(id(1), block(&fields(TRAILERS)), true).unwrap();
    let sent = subject.sent();
    assert!(sent.iter().all(|frame| frame.kind == Kind::Data));
    assert_eq!(subject.connection.queued(id(1)), 1);
    subject.feed(&mut Frames::new().window_update(0, 1).window_update(1, 1)).unwrap();
    let sent = subject.sent();
    assert_eq!(data_frames(&sent), [(1, 1, false)]);
    assert!(sent[1].ends_stream());
}

/// RFC 9113 §6.9
#[test]
fn sent_data_stays_within_windows() {
    let mut subject = server_with_open_responses(Config::default(), &[1, 3]);
    subject.connection.send_data(id(1), [zeros(60_000)], false).unwrap();
    subject.connection.send_data(id(3), [zeros(60_000)], true).unwrap();
    let total = |sent: &[SentFrame]| data_frames(sent).iter().map(|frame| frame.1).sum::<usize>();
    assert_eq!(total(&subject.sent()), 65_535, "the connection's window");
    // END_STREAM alone needs no window, even if other streams wait for it.
    subject.connection.send_data(id(1), [Bytes::new()], true).unwrap();
    subject.feed(&mut Frames::new().window_update(0, 100_000)).unwrap();
    assert_eq!(total(&subject.sent()), 120_000 - 65_535);
    assert_eq!(subject.connection.active_streams(), 0);
}

/// RFC 9113 §6.9.2: SETTINGS move the windows of streams, even below zero.
#[test]
fn settings_shrink_and_widen_send_windows() {
    let mut subject = server_with_open_responses(Config::default(), &[1]);
    subject.connection.send_data(id(1), [zeros(10_000)], false).unwrap();
    subject.feed(&mut Frames::new().settings(&[Setting::InitialWindowSize(0)])).unwrap();
    subject.sent();
    subject.connection.send_data(id(1), [zeros(10)], false).unwrap();
    subject.feed(&mut Frames::new().window_update(1, 10_000)).unwrap();
    assert_eq!(data_frames(&subject.sent()), [], "-10,000 + 10,000 is no window");
    subject.feed(&mut Frames::new().settings(&[Setting::InitialWindowSize(4)])).unwrap();
    assert_eq!(data_frames(&subject.sent()), [(1, 4, false)]);
    subject.connection.send_data(id(1), [Bytes::new()], true).unwrap();
    subject.feed(&mut Frames::new().window_update(1, 100)).unwrap();
    assert_eq!(data_frames(&subject.sent()), [(1, 6, true)]);
}

#[test]
fn empty_data_with_end_stream_needs_no_window() {
    let mut subject = server_with_open_responses(Config::default(), &[1, 3, 5]);
    subject.feed(&mut Frames::new().settings(&[Setting::InitialWindowSize(0)])).unwrap();
    subject.connection.send_data(id(3), [Bytes::new()], true).unwrap();
    subject.connection.send_data(id(1), [zeros(1)], true).unwrap();
    assert_eq!(data_frames(&subject.sent()), [(3, 0, true)]);
    // Nor when it has to wait for the output.
    let mut subject = server_with_open_responses(Config::default().output_target(10), &[1, 3]);
    subject.feed(&mut Frames::new().settings(&[Setting::InitialWindowSize(10)])).unwrap();
    subject.connection.send_data(id(1), [zeros(10)], false).unwrap();
    subject.connection.send_data(id(1), [Bytes::new()], true).unwrap();
    assert_eq!(data_frames(&subject.sent()), [(1, 10, false), (1, 0, true)]);
}

#[test]
fn writable_is_raised_once_below_the_low_water_mark() {
    let mut subject = server_with_open_responses(Config::default().send_queue_low_water(1000), &[1]);
    subject.feed(&mut Frames::new().settings(&[Setting::InitialWindowSize(0)])).unwrap();
    subject.connection.send_data(id(1), [zeros(1500)], false).unwrap();
    let mut pass = |bytes| {
        subject.events.clear();
        subject.feed(&mut Frames::new().window_update(1, bytes)).unwrap();
        subject.sent();
        subject.feed_bytes(b"").unwrap();
        subject.events.clone()
    };
    assert_eq!(pass(500), []);
    assert_eq!(pass(1), [OwnedEvent::Writable(1)]);
    assert_eq!(pass(400), []);
}

#[test]
fn long_header_blocks_are_split_into_continuations() {
    let mut subject = server_with_open_responses(Config::default(), &[1]);
    let long = "&".repeat(40_000);
    subject.connection.send_headers(id(1), block(&fields(&[("long", &long)])), true).unwrap();
    let sent = subject.sent();
    let shape: Vec<_> =
        sent.iter().map(|frame| (frame.kind, frame.flags, frame.payload.len() <= 16_384)).collect();
    let expected = [
        (Kind::Headers, Flags::END_STREAM, true),
        (Kind::Continuation, Flags::NONE, true),
        (Kind::Continuation, Flags::END_HEADERS, true),
    ];
    assert_eq!(shape, expected);
    // The response's headers came before it.
    let mut blocks = Blocks::new();
    let block = sent.into_iter().flat_map(|frame| frame.payload).collect::<Vec<_>>();
    assert_eq!(blocks.decode(&block).last().unwrap().1.len(), 40_000);
}

#[test]
fn reset_drops_queued_data() {
    let mut subject = server_with_open_responses(Config::default(), &[1, 3]);
    subject.connection.send_data(id(1), [zeros(100_000)], true).unwrap();
    subject.connection.reset(id(1), ErrorCode::Cancel);
    subject.connection.reset(id(1), ErrorCode::Cancel);
    subject.connection.reset(id(77), ErrorCode::Cancel);
    let sent = subject.sent();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].is(Kind::RstStream, 1));
    // The same for a stream without window.
    subject.connection.send_data(id(3), [zeros(100_000)], true).unwrap();
    subject.sent();
    subject.connection.reset(id(3), ErrorCode::Cancel);
    subject.feed(&mut Frames::new().window_update(0, 1000)).unwrap();
    assert!(subject.sent()[0].is(Kind::RstStream, 3));
    assert!(!subject.connection.wants_write());
}

#[test]
fn open_respects_max_concurrent_streams() {
    let mut client = Subject::bare_client(Config::default());
    let open =
        |client: &mut Subject| client.connection.open(tag(7), block(&fields(crate::support::POST)), true);
    for n in 0..100 {
        assert_eq!(open(&mut client), Ok(id(2 * n + 1)), "100 are assumed until SETTINGS arrive");
    }
    assert_eq!(open(&mut client), Err(OpenError::NoFreeStream));
    let mut server = Frames::new().settings(&[Setting::MaxConcurrentStreams(101)]);
    client.feed(&mut server).unwrap();
    assert_eq!(client.events, [OwnedEvent::StreamsFree]);
    assert_eq!(open(&mut client), Ok(id(201)));
    assert_eq!(open(&mut client), Err(OpenError::NoFreeStream));
    client.events.clear();
    client.feed(&mut server.headers(1, true, OK)).unwrap();
    assert!(matches!(&client.events[..], [OwnedEvent::Headers(1, true, _), OwnedEvent::StreamsFree]));
    assert!(client.connection.can_open());
}

#[test]
fn streams_free_is_raised_once_per_notify_free_stream() {
    let mut client = Subject::bare_client(Config::default());
    let mut server = Frames::server().settings(&[Setting::MaxConcurrentStreams(1)]);
    client.feed(&mut server).unwrap();
    client.events.clear();
    assert!(!client.connection.notify_free_stream(), "one is free already");
    client.open();
    assert!(client.connection.notify_free_stream());
    client.feed(&mut server.headers(1, true, OK)).unwrap();
    assert!(matches!(&client.events[..], [OwnedEvent::Headers(1, true, _), OwnedEvent::StreamsFree]));
    client.open();
    client.events.clear();
    client.feed(&mut Frames::new().headers(3, true, OK)).unwrap();
    assert!(matches!(&client.events[..], [OwnedEvent::Headers(3, true, _)]), "no notification was requested");
    client.open();
    client.connection.drain(client.now);
    assert!(!client.connection.notify_free_stream(), "there will never be one");
}

#[test]
fn settings_are_acknowledged_and_pings_answered() {
    let mut subject = Subject::server(Config::default());
    subject.feed(&mut Frames::new().settings(&[]).ping(false, *b"12345678")).unwrap();
    let sent = subject.sent();
    assert!(sent[0].is(Kind::Settings, 0) && sent[0].flags == Flags::ACK && sent[0].payload.is_empty());
    assert!(sent[1].is(Kind::Ping, 0) && sent[1].flags == Flags::ACK && sent[1].payload == b"12345678");
    subject.connection.ping(*b"abcdefgh");
    assert_eq!(subject.sent()[0].flags, Flags::NONE);
    subject.feed(&mut Frames::new().ping(true, *b"abcdefgh")).unwrap();
    assert_eq!(subject.events, [OwnedEvent::Pong(*b"abcdefgh")]);
}

/// RFC 9113 §6.9: not per frame, and not for streams that receive nothing more.
#[test]
fn window_update_is_sent_when_half_is_released() {
    let config = Config::default().stream_window(40_000).connection_window(100_000);
    let mut subject = Subject::server(config);
    let mut frames = Frames::new().open_request(1);
    let mut updates = |frames: Frames| {
        let mut frames = frames;
        subject.feed(&mut frames).unwrap();
        let updates = subject.sent();
        assert!(updates.iter().all(|frame| frame.kind == Kind::WindowUpdate));
        let updates = updates.iter().map(|frame| (frame.stream, frame.number())).collect::<Vec<_>>();
        (frames, updates)
    };
    let mut all = Vec::new();
    for _ in 0..4 {
        let update;
        (frames, update) = updates(frames.data(1, false, &[0; 10_000]));
        all.push(update);
    }
    assert_eq!(all, [vec![], vec![(1, 20_000)], vec![], vec![(1, 20_000)]]);
    (frames, all[0]) = updates(frames.data(1, false, &[0; 10_000]));
    assert_eq!(all[0], [(0, 50_000)]);
    let (_, update) = updates(frames.data(1, true, &[0; 10_000]));
    assert_eq!(update, [], "the stream has ended");
}

/// Found by simulation: 60 bytes are little of the window of 65,535 before the client has seen our SETTINGS, and more
/// than the 5 afterwards. Nothing was announced, and the client waited forever.
#[test]
fn bytes_released_before_a_window_shrank_are_announced() {
    let mut subject = Subject::bare_server(Config::default().stream_window(5));
    let early = Frames::new().raw(PREFACE).settings(&[]).open_request(1).data(1, false, &[0; 60]);
    subject.feed(&mut early.frame(Kind::Settings, Flags::ACK, 0, b"")).unwrap();
    let updates = subject.sent().into_iter().filter(|frame| frame.is(Kind::WindowUpdate, 1));
    assert_eq!(updates.map(|frame| frame.number()).collect::<Vec<_>>(), [60]);
}
