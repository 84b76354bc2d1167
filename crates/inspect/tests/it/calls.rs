//! Tests decoding of captured calls.

use thalweg_http2::frame::{Flags, Kind};
use thalweg_inspect::capture::{CallEnd, Endpoint, Limits};

use crate::support::{
    CLIENT, Link, SERVER, STARTED_US, Speaker, THREE, Tcp, at, described, pcap, pcapng, read_all,
    read_within, talk, three_calls,
};

#[test]
fn calls_have_messages_status_and_times() {
    let (calls, summary) = read_all(&three_calls().pcap());
    assert_eq!(described(&calls), THREE);
    assert_eq!((summary.calls, summary.http2, summary.connections, summary.packets), (3, 1, 1, 8));
    assert_eq!((summary.gaps, &summary.problem), (0, &None));
    let get = calls.iter().find(|call| call.stream == 1).unwrap();
    assert_eq!(
        (get.client.to_string(), get.server.to_string()),
        ("10.0.0.1:40000".into(), "10.0.0.2:50051".into())
    );
    assert_eq!(get.request.field(":authority"), Some(&b"a.example"[..]));
    // Packets are 1 ms apart: two of the handshake, a request and a response.
    assert_eq!((get.started_at(), get.ended_at), (at(STARTED_US + 3000), at(STARTED_US + 4000)));
    let watch = calls.iter().find(|call| call.stream == 3).unwrap();
    assert_eq!(watch.response.first_message_at, Some(at(STARTED_US + 4000)));
    assert_eq!(
        (watch.response.last_message_at, watch.ended_at),
        (Some(at(STARTED_US + 6000)), at(STARTED_US + 6000))
    );
    assert!(calls.iter().all(|call| call.notes.is_empty()));
}

#[test]
fn all_link_types_ip_versions_and_file_formats_are_supported() {
    for link in [Link::Null, Link::Ethernet, Link::Raw, Link::Cooked, Link::CookedV2] {
        for [client, server] in [["10.0.0.1:40000", "10.0.0.2:50051"], ["[2001:db8::2]:40000", "[::1]:50051"]]
        {
            let mut tcp = Tcp { link, ..Tcp::between(client, server) };
            talk(&mut tcp);
            for file in [pcap(link, &tcp.packets), pcapng(link, &tcp.packets)] {
                let (calls, summary) = read_all(&file);
                assert_eq!(described(&calls), THREE, "{link:?} {client}: {summary:?}");
                assert_eq!(calls[0].started_at(), at(STARTED_US + 3000), "{link:?}");
                assert_eq!(calls[0].client.to_string(), client);
            }
        }
    }
    let mut tcp = three_calls();
    tcp.packets.truncate(2);
    let mut file = tcp.pcap();
    file[20] = 105;
    let (_, summary) = read_all(&file);
    assert_eq!((summary.unknown_links, summary.unknown_link), (2, Some(105)));
}

/// gRFC G1: peers that agreed on it send binary metadata raw after a NUL, not in Base64.
#[test]
fn raw_binary_metadata_is_converted_to_base64() {
    let mut tcp = Tcp::new();
    let (mut client, mut server) = (Speaker::client(), Speaker::server());
    client.request(1, "/shop.Orders/Get").message(1, b"", true);
    tcp.open().send(CLIENT, &client.take());
    let status = [
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-status", "3"),
        ("grpc-status-details-bin", "\0\u{8}\u{3}\0"),
        ("trace-bin", "CAM"),
        ("empty-bin", "\0"),
        ("text", "\0a"),
    ];
    server.headers(1, &status, true);
    tcp.send(SERVER, &server.take()).close();
    let (calls, _) = read_all(&tcp.pcap());
    let trailers = calls[0].trailers.as_ref().unwrap();
    let value = |name: &str| {
        let (_, value) = trailers.iter().find(|(known, _)| known == name).unwrap();
        String::from_utf8(value.clone()).unwrap()
    };
    assert_eq!(value("grpc-status-details-bin"), "CAMA");
    assert_eq!(value("trace-bin"), "CAM");
    assert_eq!(value("empty-bin"), "");
    assert_eq!(value("text"), "\0a");
}

#[test]
fn truncated_packets_are_counted() {
    let tcp = three_calls();
    let file = tcp.pcap();
    let (_, summary) = read_all(&file);
    assert_eq!(summary.cut_packets, 0);
    // Length of the first packet on the wire.
    let mut cut = file.clone();
    cut[24 + 12..24 + 16].copy_from_slice(&2000_u32.to_le_bytes());
    let (_, summary) = read_all(&cut);
    assert_eq!(summary.cut_packets, 1);
}

#[test]
fn each_kind_of_call_end_is_reported() {
    let mut tcp = Tcp::new();
    let (mut client, mut server) = (Speaker::client(), Speaker::server());
    for stream in [1, 3, 5, 7] {
        client.request(stream, "/a.B/C").message(stream, b"x", false);
    }
    tcp.open().send(CLIENT, &client.take());
    server.frame(Kind::RstStream, Flags::NONE, 3, &[0, 0, 0, 7]);
    server.response(5).frame(Kind::Data, Flags::END_STREAM, 5, &[0, 0, 0, 0, 9, b'a', b'b']);
    server.frame(Kind::GoAway, Flags::NONE, 0, b"\0\0\0\x07\0\0\0\x0btoo much");
    tcp.send(SERVER, &server.take());
    client.frame(Kind::RstStream, Flags::NONE, 1, &[0, 0, 0, 8]);
    tcp.send(CLIENT, &client.take());
    let (calls, _) = read_all(&tcp.pcap());
    let ends: Vec<(u32, CallEnd)> = calls.iter().map(|call| (call.stream, call.end)).collect();
    let expected = [
        (3, CallEnd::Reset(Endpoint::Server, 7)),
        (5, CallEnd::Trailers),
        (1, CallEnd::Reset(Endpoint::Client, 8)),
        (7, CallEnd::Unknown),
    ];
    assert_eq!(ends, expected);
    assert_eq!((calls[1].status(), calls[1].response.incomplete_bytes), (None, 2));
    let early = "in the capture, the response ended before the request";
    assert_eq!(calls[1].notes, [early, "the last message of the response is incomplete"]);
    tcp.close();
    let (calls, _) = read_all(&tcp.pcap());
    assert_eq!(calls[3].end, CallEnd::Disconnected);
    assert_eq!(calls[3].notes, ["the server sent GOAWAY EnhanceYourCalm too much: last stream 7"]);
}

#[test]
fn invalid_status_code_is_reported_as_unknown() {
    let mut tcp = Tcp::new();
    let (mut client, mut server) = (Speaker::client(), Speaker::server());
    for stream in [1, 3] {
        client.request(stream, "/a.B/C").message(stream, b"", true);
    }
    tcp.open().send(CLIENT, &client.take());
    server.response(1).status(1, "99");
    server.response(3).headers(3, &[("grpc-status", "x"), ("grpc-message", "no%20way")], true);
    tcp.send(SERVER, &server.take());
    let (calls, _) = read_all(&tcp.pcap());
    let expected = [
        "1 a.B/C > < Some(2) Trailers the server sent an unknown grpc-status: 99",
        "3 a.B/C > < Some(2) Trailers the server sent an unknown grpc-status: x: no way",
    ];
    assert_eq!(described(&calls), expected);
}

#[test]
fn headers_are_decoded_with_padding_priority_and_continuation() {
    let mut tcp = Tcp::new();
    let (mut client, mut server) = (Speaker::client(), Speaker::server());
    let block = client.block(&[(":path", "/a.B/C"), ("content-type", "application/grpc+proto")]);
    let (first, rest) = block.split_at(3);
    let padded = [&[2, 0, 0, 0, 0, 16], first, &[0, 0]].concat();
    let flags = Flags::PADDED.with(Flags::PRIORITY);
    client.frame(Kind::Headers, flags, 1, &padded);
    client.frame(Kind::Continuation, Flags::END_HEADERS, 1, rest);
    client.frame(Kind::Unknown(77), Flags::NONE, 1, b"anything");
    client.headers(3, &[(":path", "/"), ("content-type", "text/html")], true);
    client.headers(5, &[(":path", "/a.B/D"), ("content-type", "application/grpc-web")], true);
    tcp.open().send(CLIENT, &client.take());
    server.headers(1, &[(":status", "103")], false);
    let promised = server.block(&[("pushed", "entry")]);
    server.frame(Kind::PushPromise, Flags::END_HEADERS, 1, &[&[0, 0, 0, 2], &promised[..]].concat());
    server.response(1).headers(1, &[("pushed", "entry"), ("grpc-status", "0")], true);
    tcp.send(SERVER, &server.take());
    let (calls, summary) = read_all(&tcp.pcap());
    assert_eq!(described(&calls), ["1 a.B/C > < Some(0) Trailers "]);
    assert_eq!(calls[0].trailers.as_ref().unwrap()[0], ("pushed".to_owned(), b"entry".to_vec()));
    assert_eq!(summary.other_requests, 2);
}

#[test]
fn kept_messages_are_bounded_and_the_others_counted() {
    let mut tcp = Tcp::new();
    let mut client = Speaker::client();
    for stream in [1, 3, 5] {
        client.request(stream, "/a.B/C").message(stream, b"12345", false).message(stream, b"123", false);
    }
    tcp.open().send(CLIENT, &client.take()).close();
    let limits = Limits { messages_max: 1, ..Limits::default() };
    let (calls, _) = read_within(&tcp.pcap(), &limits);
    let request = &calls[0].request;
    assert_eq!((request.messages.len(), request.message_count, request.message_bytes), (1, 2, 8));

    let limits = Limits { kept_bytes_max: 9, ..Limits::default() };
    let (calls, _) = read_within(&tcp.pcap(), &limits);
    let kept: usize = calls.iter().flat_map(|call| &call.request.messages).map(|m| m.bytes.len()).sum();
    assert_eq!((kept, calls[2].request.message_count), (8, 2));

    let limits = Limits { calls_max: 2, ..Limits::default() };
    let (calls, summary) = read_within(&tcp.pcap(), &limits);
    assert_eq!((calls.len(), summary.calls_over_limit), (2, 1));
}
