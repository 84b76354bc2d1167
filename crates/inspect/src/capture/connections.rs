//! The connections of a capture.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::capture::call::{Call, CallEnd};
use crate::capture::http2::Shared;
use crate::capture::limits::Limits;
use crate::capture::protocol::{Endpoints, Protocol, Undetected};
use crate::capture::reassembly::Reassembly;
use crate::capture::segment::Segment;
use crate::capture::summary::Summary;
use crate::capture::tls::KeyLog;

/// Connections by their addresses, smaller one first.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: Limits,
    keys: KeyLog,
    budget: usize,
    open: BTreeMap<[SocketAddr; 2], Connection>,
}

#[derive(Debug)]
struct Connection {
    endpoints: Endpoints,
    directions: [Reassembly; 2],
    protocol: Protocol,
    has_bytes: bool,
    /// Whether there was an RST, or a FIN in both directions. Later packets are stragglers.
    has_ended: bool,
    last_at: Duration,
}

impl Connections {
    pub(crate) fn new(limits: Limits, keys: KeyLog) -> Self {
        Self { limits, keys, budget: limits.kept_bytes_max, open: BTreeMap::new() }
    }

    /// Processes a segment and adds calls that ended.
    pub(crate) fn push(&mut self, segment: &Segment<'_>, summary: &mut Summary, calls: &mut Vec<Call>) {
        let (from, key) = if segment.from <= segment.to {
            (0, [segment.from, segment.to])
        } else {
            (1, [segment.to, segment.from])
        };
        let opens = segment.is_syn && segment.acknowledged.is_none();
        let Self { limits, keys, budget, open } = self;
        let mut shared = Shared { limits, keys, budget, summary, calls };
        // The addresses are reused, possibly without a captured end of the earlier connection.
        if opens
            && open
                .get(&key)
                .is_some_and(|known| known.has_ended || known.directions[from].is_other_connection(segment))
            && let Some(mut before) = open.remove(&key)
        {
            let end = if before.has_ended { CallEnd::Disconnected } else { CallEnd::Unknown };
            before.end(end, &mut shared);
        }
        if !open.contains_key(&key) {
            // Last packets of an unknown connection are ignored.
            if segment.is_reset || (segment.bytes.is_empty() && segment.cut == 0 && !segment.is_syn) {
                return;
            }
            if open.len() >= limits.connections_max {
                drop_half(open, &mut shared);
            }
            shared.summary.connections += 1;
        }
        let connection = open.entry(key).or_insert_with(|| Connection::new(key));
        connection.push(from, segment, &mut shared);
    }

    /// Ends all connections at the end of the capture.
    pub(crate) fn end(&mut self, summary: &mut Summary, calls: &mut Vec<Call>) {
        let Self { limits, keys, budget, open } = self;
        let mut shared = Shared { limits, keys, budget, summary, calls };
        for (_, mut connection) in std::mem::take(open) {
            let end = if connection.has_ended { CallEnd::Disconnected } else { CallEnd::Unknown };
            connection.end(end, &mut shared);
        }
    }
}

/// Gives up half of the connections: ended ones first, then those idle longest.
fn drop_half(open: &mut BTreeMap<[SocketAddr; 2], Connection>, shared: &mut Shared<'_>) {
    let mut by_age: Vec<(bool, Duration, [SocketAddr; 2])> =
        open.iter().map(|(key, connection)| (!connection.has_ended, connection.last_at, *key)).collect();
    by_age.sort_unstable();
    let count = by_age.len().div_ceil(2);
    for (is_open, _, key) in by_age.into_iter().take(count) {
        if let Some(mut connection) = open.remove(&key) {
            shared.summary.given_up += u64::from(is_open);
            connection.end(if is_open { CallEnd::Unknown } else { CallEnd::Disconnected }, shared);
        }
    }
}

impl Connection {
    fn new(addresses: [SocketAddr; 2]) -> Self {
        Self {
            endpoints: Endpoints { addresses, client: None, has_start: false },
            directions: <[Reassembly; 2]>::default(),
            protocol: Protocol::Unknown(Undetected::default()),
            has_bytes: false,
            has_ended: false,
            last_at: Duration::ZERO,
        }
    }

    fn push(&mut self, from: usize, segment: &Segment<'_>, shared: &mut Shared<'_>) {
        let Self { endpoints, directions, protocol, .. } = self;
        self.last_at = self.last_at.max(segment.at);
        if segment.is_syn && !self.has_bytes {
            endpoints.client = Some(if segment.acknowledged.is_none() { from } else { 1 - from });
            endpoints.has_start = true;
        }
        self.has_bytes |= !segment.bytes.is_empty() || segment.cut > 0;
        let buffered_max = shared.limits.buffered_bytes_max;
        directions[from]
            .push(segment, buffered_max, &mut |piece| protocol.push(endpoints, from, piece, shared));
        if let Some(number) = segment.acknowledged {
            let to = 1 - from;
            directions[to].acknowledge(number, &mut |piece| protocol.push(endpoints, to, piece, shared));
        }
        if segment.is_reset || directions.iter().all(Reassembly::has_ended) {
            self.has_ended = true;
            self.deliver_rest(shared);
            if let Protocol::Http2(http2) = &mut self.protocol {
                http2.end(CallEnd::Disconnected, shared);
            }
        }
    }

    fn deliver_rest(&mut self, shared: &mut Shared<'_>) {
        let Self { endpoints, directions, protocol, .. } = self;
        for (from, direction) in directions.iter_mut().enumerate() {
            direction.end(&mut |piece| protocol.push(endpoints, from, piece, shared));
        }
    }

    fn end(&mut self, end: CallEnd, shared: &mut Shared<'_>) {
        self.deliver_rest(shared);
        self.protocol.end(end, &self.endpoints, shared);
    }
}
