//! Builds captures: packets with TCP segments with HTTP/2.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{IpNumber, PacketBuilder, PacketBuilderStep, TcpHeader};
use thalweg_http2::frame::{Flags, Kind, PREFACE, emit};
use thalweg_http2::hpack::Encoder;
use thalweg_http2::{Block, FieldList, Indexing, StreamId};
use thalweg_inspect::capture::{Call, Limits, Summary, read};

/// Link types, numbered as in both formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Null = 0,
    Ethernet = 1,
    Raw = 101,
    Cooked = 113,
    CookedV2 = 276,
}

/// A packet with its time in µs since 1970.
pub(crate) type Packet = (u64, Vec<u8>);

pub(crate) const STARTED_US: u64 = 1_700_000_000_000_000;

/// A TCP connection whose packets are 1 ms apart.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) link: Link,
    pub(crate) ends: [SocketAddr; 2],
    /// Next sequence number of each end.
    pub(crate) sequences: [u32; 2],
    pub(crate) packets: Vec<Packet>,
    pub(crate) now_us: u64,
}

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

impl Tcp {
    pub(crate) fn new() -> Self {
        Self::between("10.0.0.1:40000", "10.0.0.2:50051")
    }

    pub(crate) fn between(client: &str, server: &str) -> Self {
        let ends = [client.parse().unwrap(), server.parse().unwrap()];
        // The client's sequence numbers wrap.
        Self {
            link: Link::Ethernet,
            ends,
            sequences: [0xffff_fff0, 7000],
            packets: Vec::new(),
            now_us: STARTED_US,
        }
    }

    pub(crate) fn open(&mut self) -> &mut Self {
        self.segment(CLIENT, b"", PacketBuilderStep::syn);
        self.sequences[CLIENT] = self.sequences[CLIENT].wrapping_add(1);
        let acknowledged = self.sequences[CLIENT];
        self.segment(SERVER, b"", |tcp| tcp.syn().ack(acknowledged));
        self.sequences[SERVER] = self.sequences[SERVER].wrapping_add(1);
        self
    }

    pub(crate) fn send(&mut self, from: usize, bytes: &[u8]) -> &mut Self {
        let acknowledged = self.sequences[1 - from];
        self.segment(from, bytes, |tcp| tcp.ack(acknowledged));
        self.sequences[from] = self.sequences[from].wrapping_add(bytes.len() as u32);
        self
    }

    pub(crate) fn close(&mut self) -> &mut Self {
        for from in [CLIENT, SERVER] {
            let acknowledged = self.sequences[1 - from];
            self.segment(from, b"", |tcp| tcp.ack(acknowledged).fin());
            self.sequences[from] = self.sequences[from].wrapping_add(1);
        }
        self
    }

    /// Adds a packet with the end's next sequence number, which is not advanced.
    pub(crate) fn segment(
        &mut self,
        from: usize,
        payload: &[u8],
        flags: impl FnOnce(PacketBuilderStep<TcpHeader>) -> PacketBuilderStep<TcpHeader>,
    ) {
        let [source, destination] = [self.ends[from], self.ends[1 - from]];
        let ip = match (source.ip(), destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => etherparse::IpHeaders::Ipv4(
                etherparse::Ipv4Header::new(0, 64, IpNumber::TCP, source.octets(), destination.octets())
                    .unwrap(),
                etherparse::Ipv4Extensions::default(),
            ),
            (IpAddr::V6(source), IpAddr::V6(destination)) => etherparse::IpHeaders::Ipv6(
                etherparse::Ipv6Header {
                    source: source.octets(),
                    destination: destination.octets(),
                    next_header: IpNumber::TCP,
                    hop_limit: 64,
                    ..etherparse::Ipv6Header::default()
                },
                etherparse::Ipv6Extensions::default(),
            ),
            _ => panic!("both ends have one version"),
        };
        let is_v6 = source.is_ipv6();
        let tcp = PacketBuilder::ip(ip).tcp(source.port(), destination.port(), self.sequences[from], 1000);
        let mut packet = Vec::new();
        flags(tcp).write(&mut packet, payload).unwrap();
        let protocol: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
        let head: Vec<u8> = match self.link {
            Link::Raw => Vec::new(),
            Link::Null => vec![if is_v6 { 30 } else { 2 }, 0, 0, 0],
            Link::Ethernet => [&[2; 12], &protocol[..]].concat(),
            Link::Cooked => [&[0; 14], &protocol[..]].concat(),
            Link::CookedV2 => [&protocol[..], &[0; 18]].concat(),
        };
        self.now_us += 1000;
        self.packets.push((self.now_us, [head, packet].concat()));
    }

    pub(crate) fn pcap(&self) -> Vec<u8> {
        pcap(self.link, &self.packets)
    }
}

/// Returns a pcap file.
pub(crate) fn pcap(link: Link, packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, link as u32] {
        file.extend(word.to_le_bytes());
    }
    for (at, bytes) in packets {
        let len = bytes.len() as u32;
        for word in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend_from_slice(bytes);
    }
    file
}

/// Returns a big-endian pcapng file with nanoseconds.
pub(crate) fn pcapng(link: Link, packets: &[Packet]) -> Vec<u8> {
    fn block(kind: u32, body: &[u8], file: &mut Vec<u8>) {
        let len = (12 + body.len().next_multiple_of(4)) as u32;
        file.extend(kind.to_be_bytes());
        file.extend(len.to_be_bytes());
        file.extend_from_slice(body);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(len.to_be_bytes());
    }
    let mut file = Vec::new();
    let section = [&0x1a2b_3c4d_u32.to_be_bytes()[..], &[0, 1, 0, 0], &[0xff; 8]].concat();
    block(0x0a0d_0d0a, &section, &mut file);
    // if_tsresol: 10^-9.
    let interface = [&(link as u16).to_be_bytes()[..], &[0; 6], &[0, 9, 0, 1, 9, 0, 0, 0], &[0; 4]].concat();
    block(1, &interface, &mut file);
    for (at, bytes) in packets {
        let ns = at * 1000;
        let len = bytes.len() as u32;
        let mut body = vec![0; 4];
        for word in [(ns >> 32) as u32, ns as u32, len, len] {
            body.extend(word.to_be_bytes());
        }
        body.extend_from_slice(bytes);
        block(6, &body, &mut file);
    }
    file
}

/// Output of one HTTP/2 end.
pub(crate) struct Speaker {
    encoder: Encoder,
    pub(crate) wire: Vec<u8>,
}

impl Speaker {
    pub(crate) fn client() -> Self {
        let mut speaker = Self::server();
        speaker.wire.splice(0..0, PREFACE.iter().copied());
        speaker
    }

    pub(crate) fn server() -> Self {
        let mut wire = Vec::new();
        emit(Kind::Settings, Flags::NONE, StreamId::CONNECTION, b"", &mut wire);
        Self { encoder: Encoder::new(), wire }
    }

    /// Removes and returns the bytes written so far.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.wire)
    }

    pub(crate) fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut list = FieldList::new();
        for (name, value) in fields {
            list.push(name.as_bytes(), value.as_bytes(), Indexing::Insert);
        }
        let mut block = Vec::new();
        self.encoder.encode(Block { fixed: None, extra: &list }, &mut block);
        block
    }

    pub(crate) fn headers(&mut self, stream: u32, fields: &[(&str, &str)], ends: bool) -> &mut Self {
        let block = self.block(fields);
        let flags = Flags::END_HEADERS.with_if(ends, Flags::END_STREAM);
        self.frame(Kind::Headers, flags, stream, &block)
    }

    pub(crate) fn request(&mut self, stream: u32, path: &str) -> &mut Self {
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "a.example"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
        ];
        self.headers(stream, &fields, false)
    }

    pub(crate) fn response(&mut self, stream: u32) -> &mut Self {
        self.headers(stream, &[(":status", "200"), ("content-type", "application/grpc")], false)
    }

    pub(crate) fn status(&mut self, stream: u32, code: &str) -> &mut Self {
        self.headers(stream, &[("grpc-status", code)], true)
    }

    pub(crate) fn message(&mut self, stream: u32, bytes: &[u8], ends: bool) -> &mut Self {
        let data = [&[0][..], &(bytes.len() as u32).to_be_bytes(), bytes].concat();
        self.frame(Kind::Data, Flags::NONE.with_if(ends, Flags::END_STREAM), stream, &data)
    }

    pub(crate) fn frame(&mut self, kind: Kind, flags: Flags, stream: u32, payload: &[u8]) -> &mut Self {
        emit(kind, flags, StreamId::new(stream), payload, &mut self.wire);
        self
    }
}

/// Returns a connection with three interleaved calls: an echo, a stream, and a failed call.
pub(crate) fn three_calls() -> Tcp {
    let mut tcp = Tcp::new();
    talk(&mut tcp);
    tcp
}

/// Sends the calls of [`three_calls`] over a connection.
pub(crate) fn talk(tcp: &mut Tcp) {
    let (mut client, mut server) = (Speaker::client(), Speaker::server());
    tcp.open();
    client.request(1, "/shop.Orders/Get").message(1, b"\x08\x01", true);
    client.request(3, "/shop.Orders/Watch").message(3, b"abc", false);
    tcp.send(CLIENT, &client.take());
    server.response(1).message(1, b"\x08\x02", false).status(1, "0");
    server.response(3).message(3, b"first", false);
    tcp.send(SERVER, &server.take());
    client.message(3, b"def", true);
    client.request(5, "/shop.Orders/Get").message(5, b"", true);
    tcp.send(CLIENT, &client.take());
    server.message(3, b"second", false).status(3, "0");
    let failed = [
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-status", "5"),
        ("grpc-message", "no%20such 50% %C3%A9"),
    ];
    server.headers(5, &failed, true);
    tcp.send(SERVER, &server.take());
    tcp.close();
}

pub(crate) fn read_all(file: &[u8]) -> (Vec<Call>, Summary) {
    read_within(file, &Limits::default())
}

pub(crate) fn read_within(file: &[u8], limits: &Limits) -> (Vec<Call>, Summary) {
    let mut calls = Vec::new();
    let summary = read(file, limits, |call| {
        calls.push(call);
        true
    });
    (calls, summary.unwrap())
}

/// Describes each call without times.
pub(crate) fn described(calls: &[Call]) -> Vec<String> {
    let messages = |side: &thalweg_inspect::capture::CallDirection| {
        let texts: Vec<String> =
            side.messages.iter().map(|message| message.bytes.escape_ascii().to_string()).collect();
        texts.join(",")
    };
    let mut described: Vec<String> = calls
        .iter()
        .map(|call| {
            format!(
                "{} {} >{} <{} {:?} {:?} {}",
                call.stream,
                call.method().unwrap_or_default(),
                messages(&call.request),
                messages(&call.response),
                call.status(),
                call.end,
                call.status_message(),
            )
        })
        .collect();
    described.sort();
    described
}

/// Description of the calls of [`three_calls`].
pub(crate) const THREE: [&str; 3] = [
    r"1 shop.Orders/Get >\x08\x01 <\x08\x02 Some(0) Trailers ",
    "3 shop.Orders/Watch >abc,def <first,second Some(0) Trailers ",
    "5 shop.Orders/Get > < Some(5) Trailers no such 50% é",
];

pub(crate) fn at(us: u64) -> Duration {
    Duration::from_micros(us)
}
