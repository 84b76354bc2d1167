//! Tests the connection options of `thalweg serve` with a raw HTTP/2 client.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::Running;
use thalweg_http2::frame::{self, FRAME_HEADER_LEN, Flags, FrameHeader, GoAway, Kind, PREFACE, Setting};
use thalweg_http2::hpack::Encoder;
use thalweg_http2::{Block, ErrorCode, FieldList, Indexing, StreamId};

/// Timeout, far longer than these tests take.
const PATIENCE: Duration = Duration::from_secs(60);

struct Client(TcpStream);

impl Client {
    /// Connects and sends the preface with these settings.
    fn connect(address: &str, settings: &[Setting]) -> Self {
        let mut client = Self(TcpStream::connect(address).unwrap());
        client.0.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut hello = PREFACE.to_vec();
        frame::settings(settings, &mut hello);
        frame::settings_ack(&mut hello);
        client.send(&hello);
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    fn ping(&mut self, opaque: [u8; 8]) {
        let mut out = Vec::new();
        frame::ping(false, opaque, &mut out);
        self.send(&out);
    }

    /// Returns the next frame of one of these kinds with its payload, or `None` at the end of the connection.
    fn next_of(&mut self, kinds: &[Kind]) -> Option<(FrameHeader, Vec<u8>)> {
        loop {
            let mut head = [0; FRAME_HEADER_LEN];
            match self.0.read_exact(&mut head) {
                Err(error)
                    if [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&error.kind()) =>
                {
                    return None;
                }
                read => read.unwrap(),
            }
            let head = FrameHeader::parse(&head);
            let mut payload = vec![0; head.len as usize];
            self.0.read_exact(&mut payload).unwrap();
            if kinds.contains(&head.kind) {
                return Some((head, payload));
            }
        }
    }

    /// Starts a call of BenchmarkService's `method` with this message.
    fn call(&mut self, method: &str, message: &[u8]) {
        let path = format!("/grpc.testing.BenchmarkService/{method}");
        let mut fields = FieldList::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", &path),
            (":authority", "test"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ] {
            fields.push(name.as_bytes(), value.as_bytes(), Indexing::Literal);
        }
        let mut block = Vec::new();
        Encoder::new().encode(Block { fixed: None, extra: &fields }, &mut block);
        let (stream, mut out) = (StreamId::new(1), Vec::new());
        frame::emit(Kind::Headers, Flags::END_HEADERS, stream, &block, &mut out);
        let mut envelope = vec![0];
        envelope.extend((message.len() as u32).to_be_bytes());
        envelope.extend(message);
        frame::emit(Kind::Data, Flags::NONE, stream, &envelope, &mut out);
        self.send(&out);
    }
}

/// Starts a server with these flags and runs `check` with a client.
fn check(flags: &[&str], settings: &[Setting], check: impl FnOnce(Client)) {
    let mut all = vec!["--threads", "1"];
    all.extend(flags);
    let (_server, addresses) = Running::serve_with(&["127.0.0.1:0"], &all);
    check(Client::connect(&addresses[0], settings));
}

#[test]
fn connection_at_maximum_age_gets_goaway() {
    let flags = ["--max-connection-age", "1s", "--max-connection-age-grace", "1s"];
    check(&flags, &[], |mut client| {
        // This stream never ends on its own; the grace period ends it.
        client.call("StreamingCall", b"");
        let (_, payload) = client.next_of(&[Kind::GoAway]).expect("GOAWAY");
        assert_eq!(GoAway::parse(&payload).expect("a GOAWAY").0.code, ErrorCode::NoError);
        while client.next_of(&[Kind::GoAway]).is_some() {}
    });
}

#[test]
fn silent_client_is_pinged_and_disconnected() {
    check(&["--keepalive-time", "1s", "--keepalive-timeout", "1s"], &[], |mut client| {
        let (head, _) = client.next_of(&[Kind::Ping]).expect("a PING");
        assert!(!head.flags.contains(Flags::ACK));
        while client.next_of(&[Kind::GoAway]).is_some() {}
    });
}

#[test]
fn pings_more_frequent_than_permitted_are_rejected() {
    /// Returns the number of the PING that exceeds the server's limit.
    fn too_many(mut client: Client) -> Option<u8> {
        for number in 1..=6 {
            client.ping([number; 8]);
            let (head, payload) = client.next_of(&[Kind::Ping, Kind::GoAway]).expect("an answer");
            if head.kind == Kind::GoAway {
                assert_eq!(&payload[8..], b"too_many_pings");
                return Some(number);
            }
        }
        None
    }
    // The first PING may come at any time, and two early ones are tolerated.
    check(&[], &[], |client| assert_eq!(too_many(client), Some(4)));
    check(&["--keepalive-min-time", "0s"], &[], |client| assert_eq!(too_many(client), Some(4), "no call"));
    let free = ["--keepalive-min-time", "0s", "--keepalive-permit-without-calls"];
    check(&free, &[], |client| assert_eq!(too_many(client), None));
    check(&["--keepalive-permit-without-calls"], &[], |client| {
        assert_eq!(too_many(client), Some(4), "5 min");
    });
}

#[test]
fn client_over_memory_budget_is_disconnected() {
    // A response of 8 MiB (SimpleRequest.response_size), blocked by the client's window.
    let request = [0x10, 0x80, 0x80, 0x80, 0x04];
    let no_window = [Setting::InitialWindowSize(0)];
    check(&["--max-memory", "1MiB"], &no_window, |mut client| {
        client.call("StreamingCall", &request);
        while client.next_of(&[Kind::GoAway]).is_some() {}
    });
}
