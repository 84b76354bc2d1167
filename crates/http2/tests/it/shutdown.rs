//! Ending connections: GOAWAY both ways, draining, deadlines.

use std::time::Duration;

use crate::support::{Frames, OK, OwnedEvent, POST, SentFrame, Subject, block, fields, id, tag};
use thalweg_http2::frame::{GoAway, Kind, Setting};
use thalweg_http2::{Config, ErrorCode, Initiator, OpenError, ResetCause, ResetReason, SendError};

fn goaways(sent: &[SentFrame]) -> Vec<(u32, ErrorCode)> {
    let goaways = sent.iter().filter(|frame| frame.kind == Kind::GoAway);
    let parse = |frame: &SentFrame| {
        let (goaway, _) = GoAway::parse(&frame.payload).unwrap();
        (goaway.last_stream.get(), goaway.code)
    };
    goaways.map(parse).collect()
}

const LAST: u32 = (1 << 31) - 1;

/// Drains a server with stream 1 open; ends the wait with `end_wait`.
#[track_caller]
fn check_drain(end_wait: impl FnOnce(&mut Subject, &SentFrame)) {
    let mut server = Subject::server(Config::default());
    let mut client = Frames::new().request(1);
    server.feed(&mut client).unwrap();
    server.connection.drain(server.now);
    server.connection.drain(server.now);
    let sent = server.sent();
    assert_eq!(goaways(&sent), [(LAST, ErrorCode::NoError)]);
    // Requests in flight are still served.
    let mut client = client.request(3);
    server.feed(&mut client).unwrap();
    assert_eq!(server.events.len(), 2);
    end_wait(&mut server, &sent[1]);
    assert_eq!(goaways(&server.sent()), [(3, ErrorCode::NoError)]);
    // Later requests are not, without an error.
    server.feed(&mut client.open_request(5).data(5, true, b"late!")).unwrap();
    assert_eq!(server.events.len(), 2);
    assert!(!server.connection.is_drained());
    for stream in [1, 3] {
        server.connection.send_headers(id(stream), block(&fields(OK)), true).unwrap();
    }
    assert!(server.connection.is_drained() && !server.connection.is_closed());
    assert_eq!(server.connection.timeout(), None);
}

#[test]
fn drain_ends_when_the_ping_is_acknowledged() {
    check_drain(|server, ping| {
        assert_eq!(ping.kind, Kind::Ping);
        server.feed(&mut Frames::new().ping(true, ping.payload[..].try_into().unwrap())).unwrap();
        assert!(
            !server.events.iter().any(|event| matches!(event, OwnedEvent::Pong(_))),
            "the driver sent no PING"
        );
    });
}

/// Found by simulation: the driver was notified of a PING that it had not sent.
#[test]
fn pong_after_the_drain_timeout_is_not_an_event() {
    check_drain(|server, ping| {
        let deadline = server.connection.timeout().unwrap();
        server.connection.handle_timeout(deadline).unwrap();
        server.feed(&mut Frames::new().ping(true, ping.payload[..].try_into().unwrap())).unwrap();
        assert!(
            !server.events.iter().any(|event| matches!(event, OwnedEvent::Pong(_))),
            "the driver sent no PING"
        );
    });
}

#[test]
fn drain_ends_after_its_timeout() {
    check_drain(|server, _| {
        let deadline = server.connection.timeout().unwrap();
        assert_eq!(deadline - server.now, Duration::from_secs(5));
        let early = server.now + Duration::from_nanos(4_999_999_999);
        server.connection.handle_timeout(early).unwrap();
        assert_eq!(server.sent(), []);
        server.connection.handle_timeout(deadline).unwrap();
    });
}

#[test]
fn draining_client_opens_no_stream() {
    let mut client = Subject::client(Config::default());
    client.open();
    client.connection.drain(client.now);
    assert_eq!(client.connection.open(tag(0), block(&fields(POST)), true), Err(OpenError::GoingAway));
    assert!(!client.connection.is_drained());
    client.feed(&mut Frames::new().headers(1, true, OK)).unwrap();
    assert!(client.connection.is_drained());
}

/// hyper-h2 ends a connection at GOAWAY, together with its open streams.
#[test]
fn draining_client_sends_goaway_after_its_last_stream() {
    #[track_caller]
    fn check(end_last: impl FnOnce(&mut Subject)) {
        let mut client = Subject::client(Config::default());
        for _ in 0..3 {
            client.open();
        }
        client.sent();
        client.connection.drain(client.now);
        client.feed(&mut Frames::new().settings(&[Setting::MaxConcurrentStreams(7)])).unwrap();
        client.feed(&mut Frames::new().headers(3, true, OK).rst_stream(1, ErrorCode::Cancel)).unwrap();
        assert_eq!(goaways(&client.sent()), []);
        end_last(&mut client);
        let sent = client.sent();
        assert!(sent.last().is_some_and(|last| last.is(Kind::GoAway, 0)), "{sent:?}");
        assert_eq!(goaways(&sent), [(0, ErrorCode::NoError)]);
        assert!(client.connection.is_drained());
    }
    check(|client| client.feed(&mut Frames::new().headers(5, true, OK)).unwrap());
    check(|client| client.feed(&mut Frames::new().rst_stream(5, ErrorCode::Cancel)).unwrap());
    check(|client| client.feed(&mut Frames::new().goaway(3, ErrorCode::NoError)).unwrap());
    check(|client| client.connection.reset(id(5), ErrorCode::Cancel));
}

#[test]
fn idle_client_that_drains_sends_goaway_at_once() {
    let mut client = Subject::client(Config::default());
    client.sent();
    client.connection.drain(client.now);
    assert_eq!(goaways(&client.sent()), [(0, ErrorCode::NoError)]);
    assert!(client.connection.is_drained());
}

/// RFC 9113 §6.8
#[test]
fn goaway_resets_the_streams_that_will_not_be_served() {
    let mut client = Subject::client(Config::default());
    for _ in 0..4 {
        client.open();
    }
    client.feed(&mut Frames::new().goaway(LAST, ErrorCode::NoError)).unwrap();
    assert_eq!(client.events, [OwnedEvent::GoAway(LAST, ErrorCode::NoError, b"why".to_vec())]);
    assert!(client.connection.peer_going_away() && !client.connection.can_open());
    client.events.clear();
    client.feed(&mut Frames::new().goaway(3, ErrorCode::NoError).headers(1, true, OK)).unwrap();
    let cause = ResetCause {
        initiator: Initiator::Peer,
        code: ErrorCode::NoError,
        unprocessed: true,
        reason: ResetReason::PeerWentAway,
    };
    let [goaway, first, second, response] = &client.events[..] else { panic!("{:?}", client.events) };
    assert_eq!(*goaway, OwnedEvent::GoAway(3, ErrorCode::NoError, b"why".to_vec()));
    assert_eq!([first, second], [&OwnedEvent::Reset(5, cause), &OwnedEvent::Reset(7, cause)]);
    assert!(matches!(response, OwnedEvent::Headers(1, true, _)));
    assert!(!client.connection.is_drained());
    client.connection.reset(id(3), ErrorCode::Cancel);
    assert!(client.connection.is_drained());
}

#[test]
fn reset_cause_tells_whether_the_request_was_processed() {
    #[track_caller]
    fn check(code: ErrorCode, unprocessed: bool) {
        let mut client = Subject::client(Config::default());
        client.open();
        client.feed(&mut Frames::new().rst_stream(1, code)).unwrap();
        let [OwnedEvent::Reset(1, cause)] = client.events[..] else { panic!("{:?}", client.events) };
        assert_eq!((cause.code, cause.unprocessed, cause.initiator), (code, unprocessed, Initiator::Peer));
    }
    check(ErrorCode::RefusedStream, true);
    check(ErrorCode::Cancel, false);
    check(ErrorCode::Unknown(0xabc), false);
}

#[test]
fn close_drops_streams_and_ignores_input() {
    let mut server = Subject::server(Config::default());
    server.feed(&mut Frames::new().request(1)).unwrap();
    server.connection.close(ErrorCode::InternalError, b"out of order");
    let sent = server.sent();
    assert_eq!(goaways(&sent), [(1, ErrorCode::InternalError)]);
    assert_eq!(&sent[0].payload[8..], b"out of order");
    assert!(server.connection.is_closed() && server.connection.is_drained());
    assert_eq!(server.connection.active_streams(), 0);
    let response = server.connection.send_headers(id(1), block(&fields(OK)), true);
    assert_eq!(response, Err(SendError::Closed));
    server.events.clear();
    server.feed(&mut Frames::new().request(3).data(99, true, b"nonsense")).unwrap();
    assert_eq!((server.events, server.connection.timeout()), (vec![], None));
}

#[test]
fn later_calls_return_the_same_error() {
    let mut server = Subject::server(Config::default());
    let first = server.feed(&mut Frames::new().data(0, true, b"x")).unwrap_err();
    server.sent();
    assert_eq!(server.feed(&mut Frames::new().request(1)), Err(first));
    assert_eq!(server.sent(), []);
}

/// RFC 9113 §6.5.3
#[test]
fn settings_must_be_acknowledged_in_time() {
    let mut client = Subject::bare_client(Config::default());
    client.feed(&mut Frames::new().settings(&[])).unwrap();
    client.sent();
    let deadline = client.connection.timeout().unwrap();
    assert_eq!(deadline - client.now, Duration::from_secs(10));
    let error = client.connection.handle_timeout(deadline).unwrap_err();
    assert_eq!(error.code, ErrorCode::SettingsTimeout);
    assert_eq!(goaways(&client.sent()), [(0, ErrorCode::SettingsTimeout)]);
    assert_eq!(Subject::client(Config::default()).connection.timeout(), None);
}

#[test]
fn unrepresentable_timeout_is_no_deadline() {
    let mut config = Config::default();
    (config.settings_timeout, config.drain_timeout) = (Duration::MAX, Duration::MAX);
    let mut server = Subject::bare_server(config);
    server.connection.drain(server.now);
    assert_eq!(server.connection.timeout(), None);
}
