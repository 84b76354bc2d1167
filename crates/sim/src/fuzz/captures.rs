//! Packet captures in pcap and pcapng.

use bytes::Bytes;
use thalweg_http2::{Block, Config, Connection, Event, FieldList, Indexing, Output, Tag};
use thalweg_inspect::capture::{Call, CallEnd, CaptureError, Limits, Summary, read};

use super::features::{Features, feature};

/// Limits low enough for inputs of a few KiB to reach.
const LIMITS: Limits = Limits {
    connections_max: 2,
    calls_max: 2,
    buffered_bytes_max: 1000,
    frame_len_max: 200,
    fields_len_max: 400,
    messages_max: 3,
    kept_bytes_max: 300,
};

/// Linux's raw IP.
const LINK_RAW: u32 = 101;
const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const PORTS: [u16; 2] = [40_000, 50_051];
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Captures of a connection with two calls: pcap, pcapng, and pcapng with reordered and repeated segments.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let packets = packets();
    let mut reordered = packets.clone();
    reordered.swap(3, 4);
    reordered.push(packets[4].clone());
    vec![pcap(&packets), pcapng(&packets), pcapng(&reordered)]
}

/// Checks that the calls keep to the limits and that the summary counts them.
pub(super) fn target(data: &[u8]) -> Features {
    let mut calls = Vec::new();
    let summary = read(data, &LIMITS, |call| {
        calls.push(call);
        true
    });
    let summary = match summary {
        Ok(summary) => summary,
        Err(CaptureError::Format) => return Features::new(),
        Err(error) => panic!("bytes in memory can be read: {error}"),
    };
    assert_eq!(summary.calls, calls.len() as u64);
    calls.iter().for_each(check);
    let ends = calls.iter().map(|call| feature((kind(call.end), call.status(), call.notes.len())));
    ends.chain(counter_features(&summary)).collect()
}

fn check(call: &Call) {
    for side in [&call.request, &call.response] {
        assert!(side.messages.len() <= LIMITS.messages_max);
        assert!(side.messages.len() as u64 <= side.message_count);
        let kept: usize = side.messages.iter().map(|message| message.bytes.len()).sum();
        assert!(kept <= LIMITS.kept_bytes_max && kept as u64 <= side.message_bytes, "{kept} bytes are kept");
    }
    let (_method, _message) = (call.method(), call.status_message());
}

fn kind(end: CallEnd) -> u8 {
    match end {
        CallEnd::Trailers => 0,
        CallEnd::Reset(..) => 1,
        CallEnd::Disconnected => 2,
        CallEnd::Unknown => 3,
    }
}

/// Returns a feature for each counter that is not zero.
fn counter_features(summary: &Summary) -> impl Iterator<Item = u64> {
    let Summary { http2, tls, other, started_before, silent, given_up, .. } = summary;
    let Summary { other_requests, calls_over_limit, gaps, cut_packets, fragments, unknown_links, .. } =
        summary;
    let counts =
        [http2, tls, other, started_before, silent, given_up, other_requests, calls_over_limit, gaps];
    let counts = counts.into_iter().chain([cut_packets, fragments, unknown_links]).copied();
    let problem = summary.problem.as_ref().map(|problem| feature(problem.split(' ').take(4).count()));
    counts.enumerate().filter(|(_, count)| *count > 0).map(|(at, _)| feature(("counted", at))).chain(problem)
}

/// Packets of a connection from its handshake on.
fn packets() -> Vec<Vec<u8>> {
    let mut sequences = [1000, 2000];
    let mut packets = vec![packet(0, 999, SYN, &[]), packet(1, 1999, SYN | ACK, &[])];
    for (from, bytes) in conversation() {
        packets.push(packet(from, sequences[from], ACK, &bytes));
        sequences[from] += bytes.len() as u32;
    }
    packets
}

/// Bytes sent by the client, 0, and the server, 1: a successful call and a failed one.
fn conversation() -> Vec<(usize, Vec<u8>)> {
    let now = std::time::Instant::now();
    let mut ends = [Connection::client(Config::default(), now), Connection::server(Config::default(), now)];
    let mut sent = Vec::new();
    let message = Bytes::from_static(b"\0\0\0\0\x02\x08\x01");
    for round in 0..4 {
        if round < 2 {
            let fields = fields(&[
                (":method", "POST"),
                (":scheme", "http"),
                (":path", "/test.Echo/Say"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
            ]);
            let stream = ends[0].open(Tag(0), block(&fields), false).expect("a stream is free");
            ends[0].send_data(stream, [message.clone()], true).expect("the stream is open");
        }
        let mut requests = Vec::new();
        for from in [0, 1] {
            let bytes = output(&mut ends[from]);
            let mut input = bytes.as_slice();
            while let Some(event) =
                ends[1 - from].poll_event(&mut input, now).expect("the peer follows the protocol")
            {
                if let (0, Event::Data { stream, .. } | Event::CompleteMessage { stream, .. }) = (from, event)
                {
                    requests.push(stream);
                }
            }
            sent.extend((!bytes.is_empty()).then_some((from, bytes)));
        }
        for stream in requests {
            let headers = fields(&[(":status", "200"), ("content-type", "application/grpc")]);
            ends[1].send_headers(stream, block(&headers), false).expect("the stream is open");
            ends[1].send_data(stream, [message.clone()], false).expect("the stream is open");
            let status = if round == 0 { "0" } else { "5" };
            let trailers = fields(&[("grpc-status", status), ("grpc-message", "no%20way")]);
            ends[1].send_headers(stream, block(&trailers), true).expect("the stream is open");
        }
    }
    sent
}

fn fields(pairs: &[(&str, &str)]) -> FieldList {
    let mut list = FieldList::new();
    for (name, value) in pairs {
        list.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
    }
    list
}

fn block(fields: &FieldList) -> Block<'_> {
    Block { fixed: None, extra: fields }
}

fn output(connection: &mut Connection) -> Vec<u8> {
    let (mut output, mut bytes) = (Output::default(), Vec::new());
    if connection.take_output(&mut output) {
        output.copy_to(&mut bytes);
    }
    bytes
}

/// IPv4 around TCP (RFC 791, RFC 9293), without checksums.
fn packet(from: usize, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let len = (40 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    packet.extend(ADDRESSES[from]);
    packet.extend(ADDRESSES[1 - from]);
    packet.extend(PORTS[from].to_be_bytes());
    packet.extend(PORTS[1 - from].to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend([0x50, flags, 4, 0, 0, 0, 0, 0]);
    packet.extend(payload);
    packet
}

fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, LINK_RAW] {
        file.extend(u32::to_le_bytes(number));
    }
    for (at, packet) in packets.iter().enumerate() {
        let len = packet.len() as u32;
        for number in [1_700_000_000, 1000 * at as u32, len, len] {
            file.extend(number.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn pcapng(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let len = (12 + body.len()) as u32;
        for part in [&kind.to_le_bytes()[..], &len.to_le_bytes(), body, &len.to_le_bytes()] {
            file.extend_from_slice(part);
        }
    };
    // The section, then its interface.
    block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    block(1, &[LINK_RAW.to_le_bytes(), 65_535_u32.to_le_bytes()].concat());
    for (at, packet) in packets.iter().enumerate() {
        let len = (packet.len() as u32).to_le_bytes();
        let mut body = [&[0; 4][..], &[0; 4], &(1000 * at as u32).to_le_bytes(), &len, &len, packet].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        block(6, &body);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_of_the_corpus_have_their_calls() {
        for file in corpus() {
            let mut statuses = Vec::new();
            let limits = Limits { buffered_bytes_max: 10_000, kept_bytes_max: 1000, ..LIMITS };
            let each = |call: Call| {
                statuses.push((call.method(), call.status(), call.response.message_count));
                true
            };
            let summary = read(file.as_slice(), &limits, each).unwrap();
            let call = |status| (Some("test.Echo/Say".to_owned()), Some(status), 1);
            assert_eq!(statuses, [call(0), call(5)], "{summary:?}");
            assert_eq!((summary.http2, summary.gaps, summary.problem), (1, 0, None));
        }
    }
}
