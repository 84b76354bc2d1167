//! Violations of RFC 9113 and their consequences, by section and for both roles.

use crate::support::{Frames, OK, OwnedEvent, POST, Subject, TRAILERS, id};
use thalweg_http2::frame::{Flags, Kind, PREFACE, Setting};
use thalweg_http2::{Config, ErrorCode, ResetReason, Violation};

/// The consequence of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// GOAWAY with this code.
    Connection(ErrorCode),
    /// RST_STREAM of this stream with this code; the connection continues.
    Stream(u32, ErrorCode),
    Fine,
}

use ErrorCode::{
    CompressionError, EnhanceYourCalm, FlowControlError, FrameSizeError, ProtocolError, RefusedStream,
    StreamClosed,
};
use Outcome::{Connection, Fine, Stream};

/// Feeds frames to a subject whose connection is established.
#[track_caller]
fn check(subject: &mut Subject, mut frames: Frames, expected: Outcome) {
    let outcome = subject.feed(&mut frames);
    let sent = subject.sent();
    let goaway = sent.iter().find(|frame| frame.kind == Kind::GoAway);
    let reset = sent.iter().find(|frame| frame.kind == Kind::RstStream);
    let actual = match (outcome, goaway, reset) {
        (Err(error), Some(goaway), _) => {
            assert_eq!(
                goaway.payload[4..8],
                u32::from(error.code).to_be_bytes(),
                "GOAWAY and the error agree"
            );
            assert_eq!(&goaway.payload[8..], error.violation.to_string().as_bytes());
            assert!(subject.connection.is_closed() && subject.connection.is_drained());
            Connection(error.code)
        }
        (Ok(()), None, Some(reset)) => {
            assert!(!subject.connection.is_open(id(reset.stream)));
            Stream(reset.stream, ErrorCode::from(reset.number()))
        }
        (Ok(()), None, None) => Fine,
        other => panic!("the error and what is sent do not fit together: {other:?}"),
    };
    assert_eq!(actual, expected);
    if !matches!(expected, Connection(_)) {
        // The connection still works.
        subject.feed(&mut Frames::new().ping(false, *b"are you?")).unwrap();
        assert!(subject.sent().iter().any(|frame| frame.kind == Kind::Ping));
    }
}

/// Sends these frames to a server, after the usual start of a client.
#[track_caller]
fn server(frames: impl FnOnce(Frames) -> Frames, expected: Outcome) {
    check(&mut Subject::server(Config::default()), frames(Frames::new()), expected);
}

/// Sends these frames to a client that has opened stream 1, after the usual start of a server.
#[track_caller]
fn client(frames: impl FnOnce(Frames) -> Frames, expected: Outcome) {
    let mut subject = Subject::client(Config::default());
    subject.open();
    subject.sent();
    check(&mut subject, frames(Frames::new()), expected);
}

#[test]
fn section_3_4_preface() {
    let fresh = || Subject::bare_server(Config::default());
    check(&mut fresh(), Frames::new().raw(b"GET / HTTP/1.1\r\n\r\n"), Connection(ProtocolError));
    check(&mut fresh(), Frames::new().raw(b"PRI * HTTP/2.0\r\n\r\nXX"), Connection(ProtocolError));
    let preface = || Frames::new().raw(PREFACE);
    check(&mut fresh(), preface().ping(false, [0; 8]), Connection(ProtocolError));
    check(&mut fresh(), preface().frame(Kind::Settings, Flags::ACK, 0, b""), Connection(ProtocolError));
    let mut http1 = Subject::bare_client(Config::default());
    check(&mut http1, Frames::new().raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Connection(ProtocolError));
}

#[test]
fn section_4_2_frame_size() {
    let len_max = Config::default().max_frame_size as usize;
    server(|f| f.open_request(1).data(1, false, &[0; 16_384]).data(1, true, &vec![0; 30_000]), Fine);
    server(|f| f.frame(Kind::Unknown(77), Flags::NONE, 0, &vec![0; len_max]), Fine);
    server(|f| f.open_request(1).data(1, true, &vec![0; len_max + 1]), Connection(FrameSizeError));
    server(|f| f.frame(Kind::Unknown(77), Flags::NONE, 0, &vec![0; len_max + 1]), Connection(FrameSizeError));
    server(|f| f.frame(Kind::Ping, Flags::NONE, 0, &[0; 7]), Connection(FrameSizeError));
    server(|f| f.frame(Kind::Ping, Flags::NONE, 0, &[0; 9]), Connection(FrameSizeError));
    server(|f| f.frame(Kind::Settings, Flags::NONE, 0, &[0; 5]), Connection(FrameSizeError));
    server(|f| f.frame(Kind::Settings, Flags::ACK, 0, &[0; 6]), Connection(FrameSizeError));
    server(|f| f.frame(Kind::WindowUpdate, Flags::NONE, 0, &[0; 5]), Connection(FrameSizeError));
    server(|f| f.frame(Kind::GoAway, Flags::NONE, 0, &[0; 7]), Connection(FrameSizeError));
    server(|f| f.request(1).frame(Kind::RstStream, Flags::NONE, 1, &[0; 3]), Connection(FrameSizeError));
    server(|f| f.request(1).frame(Kind::Priority, Flags::NONE, 1, &[0; 4]), Stream(1, FrameSizeError));
    let truncated_priority =
        |f: Frames| f.frame(Kind::Headers, Flags::END_HEADERS.with(Flags::PRIORITY), 1, &[0; 4]);
    server(truncated_priority, Connection(FrameSizeError));
}

#[test]
fn section_4_3_and_6_10_header_blocks() {
    server(|f| f.frame(Kind::Headers, Flags::END_HEADERS, 1, &[0x80]), Connection(CompressionError));
    server(|f| f.frame(Kind::Continuation, Flags::END_HEADERS, 1, b""), Connection(ProtocolError));
    let start = |mut f: Frames| {
        let block = f.block(POST);
        f.frame(Kind::Headers, Flags::END_STREAM, 1, &block)
    };
    let end = |f: Frames, stream| f.frame(Kind::Continuation, Flags::END_HEADERS, stream, b"");
    server(|f| end(start(f), 1), Fine);
    server(|f| end(start(f).ping(false, [0; 8]), 1), Connection(ProtocolError));
    server(|f| end(start(f), 3), Connection(ProtocolError));
    server(|f| end(start(f).frame(Kind::Unknown(99), Flags::NONE, 0, b""), 1), Connection(ProtocolError));
    server(|f| end(f.request(1), 1), Connection(ProtocolError));
}

#[test]
fn section_5_1_idle() {
    server(|f| f.data(1, true, b"x"), Connection(ProtocolError));
    server(|f| f.rst_stream(1, ErrorCode::Cancel), Connection(ProtocolError));
    server(|f| f.window_update(1, 1), Connection(ProtocolError));
    server(|f| f.frame(Kind::Priority, Flags::NONE, 1, &[0, 0, 0, 9, 0]), Fine);
    client(|f| f.data(3, true, b"x"), Connection(ProtocolError));
    client(|f| f.headers(3, true, OK), Connection(ProtocolError));
    client(|f| f.headers(2, true, OK), Connection(ProtocolError));
}

#[test]
fn section_5_1_half_closed_remote() {
    server(|f| f.request(1).data(1, true, b"more!"), Stream(1, StreamClosed));
    server(|f| f.request(1).headers(1, true, TRAILERS), Stream(1, StreamClosed));
    server(|f| f.request(1).window_update(1, 1), Fine);
    server(|f| f.request(1).rst_stream(1, ErrorCode::Cancel), Fine);
}

#[test]
fn section_5_1_closed() {
    let ended = |f: Frames| f.headers(1, false, OK).headers(1, true, TRAILERS);
    client(|f| ended(f).data(1, true, b"more!"), Connection(StreamClosed));
    client(|f| ended(f).headers(1, true, TRAILERS), Connection(StreamClosed));
    client(|f| ended(f).frame(Kind::Continuation, Flags::END_HEADERS, 1, b""), Connection(StreamClosed));
    client(|f| ended(f).window_update(1, 1).rst_stream(1, ErrorCode::NoError), Fine);
    let reset = |f: Frames| f.open_request(1).rst_stream(1, ErrorCode::Cancel);
    server(|f| reset(f).data(1, true, b"more!"), Stream(1, StreamClosed));
    server(|f| reset(f).headers(1, true, TRAILERS), Stream(1, StreamClosed));
    server(|f| reset(f).window_update(1, 1).rst_stream(1, ErrorCode::Cancel), Fine);
}

/// Frames in flight to a stream that we have reset are legitimate. They are accepted, and keep HPACK and the
/// connection's window in sync.
#[test]
fn section_5_1_closed_by_us() {
    let mut subject = Subject::client(Config::default());
    let stream = subject.open();
    subject.connection.reset(stream, ErrorCode::Cancel);
    subject.sent();
    let mut frames =
        Frames::new().headers(1, false, OK).data(1, false, &[0; 16_384]).headers(1, true, TRAILERS);
    subject.feed(&mut frames).unwrap();
    assert_eq!(subject.events, []);
    let other = subject.open();
    subject.feed(&mut frames.headers(other.get(), true, OK)).unwrap();
    assert!(
        matches!(&subject.events[..], [crate::support::OwnedEvent::Headers(3, true, fields)] if fields.len() == 2)
    );
    assert!(subject.sent().iter().all(|frame| frame.kind != Kind::RstStream));
}

#[test]
fn section_5_1_1_identifiers() {
    server(|f| f.request(2), Connection(ProtocolError));
    server(|f| f.request(0), Connection(ProtocolError));
    server(|f| f.request(5).request(3), Connection(ProtocolError));
    server(|f| f.request(5).data(3, true, b"x"), Connection(ProtocolError));
    server(|f| f.data(0, true, b"x"), Connection(ProtocolError));
    server(|f| f.request(0x7fff_ffff), Fine);
}

#[test]
fn section_5_1_2_concurrency() {
    let config = Config::default().max_concurrent_streams(2);
    check(&mut Subject::server(config.clone()), Frames::new().request(1).request(3), Fine);
    let mut subject = Subject::server(config);
    check(&mut subject, Frames::new().request(1).request(3).request(5), Stream(5, RefusedStream));
    assert_eq!(subject.connection.active_streams(), 2);
}

#[test]
fn section_6_1_and_6_2_padding() {
    server(|f| f.open_request(1).padded_data(1, true, b"abc", 255), Fine);
    // Discarded data is discarded with its padding.
    server(|f| f.request(1).padded_data(1, false, b"abcde", 255), Stream(1, StreamClosed));
    server(|f| f.open_request(1).frame(Kind::Data, Flags::PADDED, 1, b""), Connection(FrameSizeError));
    server(|f| f.open_request(1).frame(Kind::Data, Flags::PADDED, 1, &[1]), Connection(ProtocolError));
    server(|f| f.open_request(1).frame(Kind::Data, Flags::PADDED, 1, &[0]), Fine);
    server(
        |f| f.frame(Kind::Headers, Flags::END_HEADERS.with(Flags::PADDED), 1, &[1]),
        Connection(ProtocolError),
    );
}

#[test]
fn section_6_3_priority() {
    server(|f| f.frame(Kind::Priority, Flags::NONE, 0, &[0; 5]), Connection(ProtocolError));
    server(
        |f| f.request(1).frame(Kind::Priority, Flags::NONE, 1, &[0, 0, 0, 1, 0]),
        Stream(1, ProtocolError),
    );
    // RST_STREAM must not be sent on an idle stream.
    server(|f| f.frame(Kind::Priority, Flags::NONE, 1, &[0, 0, 0, 1, 0]), Connection(ProtocolError));
    let depends_on = |stream: u8| {
        move |mut f: Frames| {
            let payload = [&[0x80, 0, 0, stream, 255], &f.block(POST)[..]].concat();
            f.frame(Kind::Headers, Flags::END_HEADERS.with(Flags::PRIORITY), 1, &payload)
        }
    };
    server(depends_on(1), Stream(1, ProtocolError));
    server(depends_on(3), Fine);
}

#[test]
fn section_6_4_to_6_8_streams_of_frames() {
    server(|f| f.rst_stream(0, ErrorCode::Cancel), Connection(ProtocolError));
    server(|f| f.frame(Kind::Settings, Flags::NONE, 1, b""), Connection(ProtocolError));
    server(|f| f.frame(Kind::Ping, Flags::NONE, 1, &[0; 8]), Connection(ProtocolError));
    server(|f| f.frame(Kind::GoAway, Flags::NONE, 1, &[0; 8]), Connection(ProtocolError));
    server(|f| f.frame(Kind::PushPromise, Flags::END_HEADERS, 1, &[0; 4]), Connection(ProtocolError));
    client(|f| f.frame(Kind::PushPromise, Flags::END_HEADERS, 1, &[0; 4]), Connection(ProtocolError));
    client(|f| f.goaway(1, ErrorCode::NoError).goaway(3, ErrorCode::NoError), Connection(ProtocolError));
    server(|f| f.frame(Kind::Unknown(0xfe), Flags(0xff), 7, b"anything"), Fine);
}

#[test]
fn section_6_5_2_settings() {
    server(|f| f.settings(&[Setting::EnablePush(2)]), Connection(ProtocolError));
    server(|f| f.settings(&[Setting::EnablePush(1)]), Fine);
    client(|f| f.settings(&[Setting::EnablePush(1)]), Connection(ProtocolError));
    server(|f| f.settings(&[Setting::InitialWindowSize(1 << 31)]), Connection(FlowControlError));
    server(|f| f.settings(&[Setting::InitialWindowSize((1 << 31) - 1)]), Fine);
    server(|f| f.settings(&[Setting::MaxFrameSize(16_383)]), Connection(ProtocolError));
    server(|f| f.settings(&[Setting::MaxFrameSize(1 << 24)]), Connection(ProtocolError));
    server(|f| f.settings(&[Setting::Unknown(0xff, 7), Setting::MaxHeaderListSize(0)]), Fine);
    server(|f| f.settings(&[Setting::Unknown(0xff, 7); 33]), Connection(EnhanceYourCalm));
}

#[test]
fn section_6_9_flow_control() {
    server(|f| f.window_update(0, 0), Connection(ProtocolError));
    server(|f| f.request(1).window_update(1, 0), Stream(1, ProtocolError));
    server(|f| f.window_update(0, (1 << 31) - 1 - 65_535), Fine);
    server(|f| f.window_update(0, (1 << 31) - 65_535), Connection(FlowControlError));
    server(|f| f.request(1).window_update(1, (1 << 31) - 65_535), Stream(1, FlowControlError));
    let overflow = [Setting::InitialWindowSize(65_536)];
    let widest = (1 << 31) - 1 - 65_535;
    server(|f| f.request(1).window_update(1, widest).settings(&overflow), Connection(FlowControlError));
}

#[test]
fn section_6_9_1_received_windows() {
    let mut config = Config::default().stream_window(20_000).connection_window(65_535);
    let open = |f: Frames| f.open_request(1).open_request(3).open_request(5).open_request(7);
    let full = |f: Frames, stream| f.data(stream, false, &[0; 10_000]).data(stream, false, &[0; 10_000]);
    let server_without_releases = |config: &Config| {
        let mut subject = Subject::server(config.clone());
        subject.releases = false;
        subject
    };
    check(&mut server_without_releases(&config), full(open(Frames::new()), 1), Fine);
    let beyond = full(open(Frames::new()), 1).data(1, false, &[0; 5]);
    check(&mut server_without_releases(&config), beyond, Stream(1, FlowControlError));
    // Padding counts: 10,000 + 9,745 + 255 + 1.
    let padded = open(Frames::new()).data(1, false, &[0; 10_000]).padded_data(1, true, &[0; 9745], 255);
    check(&mut server_without_releases(&config), padded, Stream(1, FlowControlError));
    // The connection's window is released as DATA arrives, even if the driver does not release it.
    let all = [1, 3, 5, 7].into_iter().fold(open(Frames::new()), full);
    check(&mut server_without_releases(&config), all, Fine);
    // Before our SETTINGS are acknowledged, the peer assumes 65,535.
    config.stream_window = 10;
    let mut early = Subject::bare_server(config);
    let frames = Frames::new().raw(PREFACE).settings(&[]).open_request(1);
    check(&mut early, frames.data(1, false, &[0; 16_384]), Fine);
}

/// Found by simulation: a peer that had sent 16,384 bytes before it saw our window of 10 could not end its stream.
#[test]
fn empty_end_stream_is_accepted_while_the_window_is_negative() {
    let mut subject = Subject::bare_server(Config::default().stream_window(10));
    subject.releases = false;
    let early = Frames::new().raw(PREFACE).settings(&[]).open_request(1).data(1, false, &[0; 16_384]);
    check(&mut subject, early.frame(Kind::Settings, Flags::ACK, 0, b"").data(1, true, b""), Fine);
}

#[test]
fn section_8_1_messages() {
    server(|f| f.open_request(1).headers(1, false, TRAILERS), Stream(1, ProtocolError));
    server(|f| f.open_request(1).headers(1, true, TRAILERS), Fine);
    client(|f| f.data(1, true, b"early"), Stream(1, ProtocolError));
    client(|f| f.headers(1, true, &[(":status", "103")]), Stream(1, ProtocolError));
    client(|f| f.headers(1, false, &[(":status", "101")]), Stream(1, ProtocolError));
    client(|f| f.headers(1, false, &[(":status", "103")]).headers(1, true, OK), Fine);
    client(|f| f.headers(1, false, OK).headers(1, true, OK), Stream(1, ProtocolError));
    client(|f| f.headers(1, true, TRAILERS), Stream(1, ProtocolError));
    server(|f| f.headers(1, true, TRAILERS), Stream(1, ProtocolError));
}

/// RFC 9113 §8.1.1
#[test]
fn section_8_1_1_content_length() {
    let of = |length: &'static str| {
        move |f: Frames| f.headers(1, false, &[POST, &[("content-length", length)]].concat())
    };
    server(|f| of("8")(f).data(1, false, b"12345").data(1, true, b"678"), Fine);
    server(|f| of("8")(f).data(1, false, b"12345").data(1, true, b"67"), Stream(1, ProtocolError));
    server(|f| of("8")(f).data(1, false, b"123456789"), Stream(1, ProtocolError));
    server(|f| of("8")(f).data(1, false, b"12345").headers(1, true, TRAILERS), Stream(1, ProtocolError));
    server(|f| of("8")(f).padded_data(1, true, b"12345678", 9), Fine);
    server(|f| f.headers(1, true, &[POST, &[("content-length", "1")]].concat()), Stream(1, ProtocolError));
    // A response to HEAD has the content-length of an absent body.
    client(|f| f.headers(1, true, &[OK, &[("content-length", "9")]].concat()), Fine);
    client(
        |f| f.headers(1, false, &[OK, &[("content-length", "9")]].concat()).data(1, true, b"12345"),
        Stream(1, ProtocolError),
    );
}

/// RFC 9113 §8.5: tunnels are rejected with an HTTP response, and the connection continues.
#[test]
fn section_8_5_connect() {
    let connect = &[(":method", "CONNECT"), (":authority", "test:1")];
    let mut subject = Subject::server(Config::default());
    subject.feed(&mut Frames::new().headers(1, false, connect)).unwrap();
    let sent = subject.sent();
    assert_eq!(
        crate::support::Blocks::new().decode(&sent[0].payload),
        [(":status".to_owned(), "501".to_owned())]
    );
    assert!(sent[0].ends_stream());
    assert!(sent[1].is(Kind::RstStream, 1) && sent[1].number() == 0);
    assert_eq!((subject.events, subject.connection.active_streams()), (vec![], 0));
}

/// RFC 9113 §10.5.1
#[test]
fn section_10_5_1_header_lists() {
    // Huffman coding does not shorten `&`.
    let large = "&".repeat(17 << 10);
    let mut subject = Subject::server(Config::default());
    let mut frames = Frames::new();
    let block = frames.block(&[POST, &[("large", &large)]].concat());
    let (first, second) = block.split_at(16_000);
    let frames = frames.frame(Kind::Headers, Flags::END_STREAM, 1, first);
    let mut frames = frames.frame(Kind::Continuation, Flags::END_HEADERS, 1, second);
    subject.feed(&mut frames).unwrap();
    let sent = subject.sent();
    assert!(sent[0].is(Kind::RstStream, 1) && sent[0].number() == u32::from(EnhanceYourCalm));
    // The table is still in sync with the client's encoder.
    check(&mut subject, frames.request(3), Fine);
}

/// Violations can be matched, and their texts are stable.
#[test]
fn violations_are_matchable_and_have_stable_texts() {
    let mut subject = Subject::server(Config::default());
    let error = subject.feed(&mut Frames::new().data(0, false, b"body")).unwrap_err();
    assert_eq!(error.violation, Violation::DataOnConnection);
    let text = "HTTP/2 connection ended by this endpoint with PROTOCOL_ERROR: DATA on stream 0";
    assert_eq!(error.to_string(), text);

    let mut subject = Subject::server(Config::default());
    let mut frames = Frames::new().headers(1, false, &[POST, &[("content-length", "3")]].concat());
    subject.feed(&mut frames).unwrap();
    subject.feed(&mut frames.data(1, true, b"four")).unwrap();
    let Some(OwnedEvent::Reset(1, cause)) = subject.events.last() else { panic!("{:?}", subject.events) };
    assert_eq!(cause.reason, ResetReason::Violation(Violation::BodyLengthMismatch));
    assert_eq!(cause.reason.to_string(), "body length differs from `content-length`");
}
