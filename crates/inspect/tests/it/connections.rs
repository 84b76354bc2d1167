//! Tests connections that are incomplete, not gRPC, or too many.

use thalweg_inspect::capture::{CallEnd, CaptureError, Limits, is_capture, read};

use crate::support::{
    CLIENT, Link, SERVER, Speaker, THREE, Tcp, described, pcap, read_all, read_within, talk, three_calls,
};

#[test]
fn gap_stops_decoding_of_one_direction_only() {
    let tcp = three_calls();
    let without = |index: usize| {
        let mut packets = tcp.packets.clone();
        packets.remove(index);
        read_all(&pcap(Link::Ethernet, &packets))
    };
    // The client's second packet: headers of the third call, and a message of the second.
    let (calls, summary) = without(4);
    assert_eq!((summary.gaps, summary.http2), (1, 1));
    assert_eq!(
        described(&calls),
        [
            THREE[0],
            "3 shop.Orders/Watch >abc <first,second Some(0) Trailers ",
            "5  > < Some(5) Trailers no such 50% é"
        ]
    );
    let notes = |index: usize| -> Vec<&str> { calls[index].notes.iter().map(String::as_str).collect() };
    assert_eq!(notes(0), [""; 0]);
    assert_eq!(notes(1), ["in the capture, the response ended before the request"]);
    assert_eq!(notes(2), ["the request headers are not in the capture"]);
    // The first responses: without them the server's second packet cannot be decoded.
    let (calls, summary) = without(3);
    assert_eq!(summary.gap_bytes > 0, summary.gaps == 1);
    assert_eq!(described(&calls)[0], r"1 shop.Orders/Get >\x08\x01 < None Disconnected ");
    assert_eq!(calls.len(), 3);
    let expected = "data of the server was not decoded further: ";
    assert!(calls.iter().all(|call| call.notes[0].starts_with(expected)), "{calls:?}");
}

#[test]
fn truncated_packets_leave_a_gap() {
    let mut tcp = three_calls();
    let file = {
        let last = tcp.packets.len() - 3;
        let len = tcp.packets[last].1.len();
        tcp.packets[last].1.truncate(len - 4);
        let mut file = tcp.pcap();
        // Original length, stored after the captured length.
        let before: usize = 24 + tcp.packets[..last].iter().map(|(_, bytes)| 16 + bytes.len()).sum::<usize>();
        file[before + 12..before + 16].copy_from_slice(&(len as u32).to_le_bytes());
        file
    };
    let (calls, summary) = read_all(&file);
    assert_eq!((summary.gaps, summary.gap_bytes), (1, 4));
    assert_eq!(calls.len(), 3);
    assert_eq!(calls.last().unwrap().end, CallEnd::Disconnected);
}

#[test]
fn connection_started_before_the_capture_is_not_decoded() {
    let tcp = three_calls();
    let (calls, summary) = read_all(&pcap(Link::Ethernet, &tcp.packets[3..]));
    assert_eq!((calls.len(), summary.started_before, summary.http2), (0, 1, 0));
    // Only the handshake is missing.
    let (calls, summary) = read_all(&pcap(Link::Ethernet, &tcp.packets[2..]));
    assert_eq!((described(&calls), summary.http2), (THREE.map(str::to_owned).to_vec(), 1));
}

#[test]
fn other_protocols_are_counted() {
    let check = |from: usize, bytes: &[u8], expected: [u64; 4]| {
        let mut tcp = Tcp::new();
        tcp.open().send(from, bytes).close();
        let (calls, summary) = read_all(&tcp.pcap());
        assert!(calls.is_empty());
        assert_eq!([summary.tls, summary.other, summary.http2, summary.silent], expected, "{bytes:?}");
    };
    check(CLIENT, &[0x16, 3, 1, 2, 0, 1], [1, 0, 0, 0]);
    check(CLIENT, b"GET / HTTP/1.1\r\n\r\n", [0, 1, 0, 0]);
    check(SERVER, b"SSH-2.0-OpenSSH", [0, 1, 0, 0]);
    check(CLIENT, b"PRI * HT", [0, 1, 0, 0]);
    check(CLIENT, b"", [0, 0, 0, 1]);
}

#[test]
fn server_may_send_first_and_addresses_may_be_reused() {
    let mut tcp = Tcp::new();
    let (mut client, mut server) = (Speaker::client(), Speaker::server());
    tcp.open().send(SERVER, &server.take());
    client.request(1, "/a.B/C");
    for byte in client.take() {
        tcp.send(CLIENT, &[byte]);
    }
    server.response(1).status(1, "0");
    tcp.send(SERVER, &server.take()).close();
    tcp.sequences = [99, 4_000_000_000];
    talk(&mut tcp);
    let (calls, summary) = read_all(&tcp.pcap());
    assert_eq!(described(&calls)[..2], ["1 a.B/C > < Some(0) Trailers ", THREE[0]]);
    assert_eq!((calls.len(), summary.http2), (4, 2));
}

#[test]
fn addresses_may_be_reused_without_a_captured_end() {
    let mut tcp = Tcp::new();
    let (mut client, mut server) = (Speaker::client(), Speaker::server());
    client.request(1, "/a.B/C");
    tcp.open().send(CLIENT, &client.take());
    server.response(1);
    tcp.send(SERVER, &server.take());
    tcp.sequences = [99, 4_000_000_000];
    talk(&mut tcp);
    let (calls, summary) = read_all(&tcp.pcap());
    let described = described(&calls);
    assert_eq!(described[..2], ["1 a.B/C > < None Unknown ", THREE[0]]);
    assert_eq!((calls.len(), summary.http2, summary.connections, summary.gaps), (4, 2, 2, 0));
}

#[test]
fn retransmitted_syn_belongs_to_the_same_connection() {
    let mut tcp = three_calls();
    // Immediately after the first, and later among data.
    let syn = tcp.packets[0].1.clone();
    for place in [1, 5] {
        tcp.packets.insert(place, (tcp.packets[place].0, syn.clone()));
    }
    let (calls, summary) = read_all(&tcp.pcap());
    assert_eq!((described(&calls), summary.connections), (THREE.map(str::to_owned).to_vec(), 1));
}

#[test]
fn connections_idle_longest_are_dropped_beyond_the_limit() {
    let mut packets = Vec::new();
    for port in 1000..1020 {
        let mut tcp = Tcp::between(&format!("10.0.0.1:{port}"), "10.0.0.2:50051");
        let mut client = Speaker::client();
        client.request(1, "/a.B/C");
        tcp.open().send(CLIENT, &client.take());
        packets.extend(tcp.packets);
    }
    let limits = Limits { connections_max: 8, ..Limits::default() };
    let (calls, summary) = read_within(&pcap(Link::Ethernet, &packets), &limits);
    assert_eq!((calls.len(), summary.connections, summary.http2), (20, 20, 20));
    assert_eq!(summary.given_up, 12);
}

#[test]
fn non_captures_and_truncated_captures_are_distinguished() {
    let file = three_calls().pcap();
    assert!(is_capture(&file) && !is_capture(b"\x08\x01\x10\x02") && !is_capture(b"\xd4"));
    let read_bytes = |bytes: &[u8]| read(bytes, &Limits::default(), |_| true);
    assert!(matches!(read_bytes(b"neither of these, but long enough"), Err(CaptureError::Format)));
    assert!(matches!(read_bytes(b""), Err(CaptureError::Format)));
    let (calls, summary) = read_all(&file[..file.len() - 100]);
    assert_eq!(summary.problem.as_deref(), Some("truncated in the middle of a packet"));
    assert_eq!(calls.len(), 3);
    // Stops early.
    let mut seen = 0;
    read(&file[..], &Limits::default(), |_| {
        seen += 1;
        false
    })
    .unwrap();
    assert_eq!(seen, 1);
}
