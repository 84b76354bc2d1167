//! Finds the TCP segment in a packet.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::Linktype;

use crate::capture::container::Packet;

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) at: Duration,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: Option<u32>,
    pub(crate) is_syn: bool,
    pub(crate) is_fin: bool,
    pub(crate) is_reset: bool,
    pub(crate) bytes: &'a [u8],
    /// Bytes missing after `bytes`.
    pub(crate) cut: usize,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parsed<'a> {
    Segment(Segment<'a>),
    /// Part of an IP packet.
    Fragment,
    UnknownLink(i32),
    /// Another or broken protocol.
    Other,
}

/// Header length of Linux cooked capture version 2. The protocol is at its start.
const COOKED_V2_LEN: usize = 20;
/// Header length of version 1. The protocol is at its end.
const COOKED_LEN: usize = 16;
/// Length of the address family in BSD loopback, in either byte order.
const LOOPBACK_LEN: usize = 4;

pub(crate) fn parse<'a>(packet: &Packet<'a>) -> Parsed<'a> {
    let bytes = packet.bytes;
    let of_protocol = |at: usize, len: usize| {
        let protocol = bytes.get(at..at + 2)?;
        let payload = bytes.get(len..)?;
        let protocol = u16::from_be_bytes([protocol[0], protocol[1]]);
        Some(LaxSlicedPacket::from_ether_type(EtherType(protocol), payload))
    };
    let sliced = match packet.link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(bytes).ok(),
        Linktype::LINUX_SLL => of_protocol(COOKED_LEN - 2, COOKED_LEN),
        Linktype::LINUX_SLL2 => of_protocol(0, COOKED_V2_LEN),
        Linktype::NULL | Linktype::LOOP => {
            bytes.get(LOOPBACK_LEN..).and_then(|bytes| LaxSlicedPacket::from_ip(bytes).ok())
        }
        // Some systems use 12 and 14 for RAW.
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => {
            LaxSlicedPacket::from_ip(bytes).ok()
        }
        Linktype(number) => return Parsed::UnknownLink(number),
    };
    let Some(sliced) = sliced else { return Parsed::Other };
    let (source, destination, payload): (IpAddr, IpAddr, _) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into(), ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into(), ip.payload())
        }
        _ => return Parsed::Other,
    };
    if payload.fragmented {
        return Parsed::Fragment;
    }
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { return Parsed::Other };
    Parsed::Segment(Segment {
        at: packet.at,
        from: SocketAddr::new(source, tcp.source_port()),
        to: SocketAddr::new(destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
        is_syn: tcp.syn(),
        is_fin: tcp.fin(),
        is_reset: tcp.rst(),
        bytes: tcp.payload(),
        cut: if payload.incomplete { packet.cut } else { 0 },
    })
}
