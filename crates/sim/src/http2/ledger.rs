//! Records what each side sent, and checks that the other side receives exactly that.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use thalweg_http2::{ErrorCode, FieldList, Initiator, ResetCause};

use super::{Both, Side};
use crate::pattern;

/// All streams of a world, and how both sides close the connection.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    streams: BTreeMap<u32, Record>,
    /// Codes of the GOAWAYs requested by each side's driver.
    goaways: Both<Vec<ErrorCode>>,
    pings: Both<Pings>,
}

#[derive(Debug, Default)]
struct Pings {
    sent: u64,
    acknowledged: u64,
}

/// One stream.
#[derive(Debug, Default)]
struct Record {
    /// Data sent by each side.
    directions: Both<Direction>,
    /// Abnormal end of the stream for each side.
    ends: Both<Option<StreamEnd>>,
    /// The server's driver received the request.
    request_received: bool,
    /// The client did not know the server's SETTINGS when it opened the stream.
    opened_before_settings: bool,
}

/// One direction of a stream.
#[derive(Debug, Default)]
struct Direction {
    /// In order: informational headers, the headers, trailers.
    header_blocks: Vec<SentHeaders>,
    header_blocks_received: usize,
    /// Bytes accepted by the connection, and bytes received by the other side's driver.
    sent_bytes: usize,
    received: usize,
    ended: bool,
    end_received: bool,
}

#[derive(Clone, Copy, Debug)]
struct SentHeaders {
    hash: u64,
    /// It exceeds the other side's limit.
    oversized: bool,
}

/// End of a stream for one side, other than by two END_STREAMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    /// Its driver reset it.
    Reset(ErrorCode),
    /// Its driver was notified.
    Notified(ErrorCode),
    /// The connection ended.
    Lost,
}

/// The body that a side sends on a stream.
pub(super) fn body_of(stream: u32, sender: Side) -> u64 {
    u64::from(stream) << 1 | u64::from(sender)
}

/// Hashes a list of fields without pseudo-headers.
pub(super) fn hash_fields<'a>(fields: impl Iterator<Item = thalweg_http2::Field<'a>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for field in fields.filter(|field| !field.name.starts_with(b":")) {
        (field.name, field.value).hash(&mut hasher);
    }
    hasher.finish()
}

impl Ledger {
    /// Records that the client opened a stream.
    pub(super) fn open(&mut self, stream: u32, opened_before_settings: bool) {
        let Entry::Vacant(vacant) = self.streams.entry(stream) else {
            panic!("stream {stream} was opened twice")
        };
        vacant.insert(Record { opened_before_settings, ..Record::default() });
    }

    /// Records accepted headers, informational headers or trailers.
    pub(super) fn send_headers(
        &mut self,
        sender: Side,
        stream: u32,
        fields: &FieldList,
        list_size_max: u32,
        end: bool,
    ) {
        let direction = &mut self.record(stream).directions[sender];
        let oversized = fields.size() > list_size_max as usize;
        direction.header_blocks.push(SentHeaders { hash: hash_fields(fields.iter()), oversized });
        direction.ended |= end;
    }

    /// Records accepted bytes.
    pub(super) fn send(&mut self, sender: Side, stream: u32, len: usize, end: bool) {
        let direction = &mut self.record(stream).directions[sender];
        assert!(!direction.ended, "the connection accepts bytes after END_STREAM");
        direction.sent_bytes += len;
        direction.ended |= end;
    }

    /// Bytes sent so far.
    pub(super) fn sent_bytes(&mut self, sender: Side, stream: u32) -> usize {
        self.record(stream).directions[sender].sent_bytes
    }

    pub(super) fn receive_headers(&mut self, receiver: Side, stream: u32, fields_hash: u64, end: bool) {
        let record = self.record(stream);
        record.request_received |= receiver == Side::Server;
        assert_eq!(record.ends[receiver], None, "stream {stream}: a head after its end");
        let direction = &mut record.directions[receiver.other()];
        let sent = direction.header_blocks.get(direction.header_blocks_received).copied();
        let sent = sent.unwrap_or_else(|| panic!("stream {stream}: a head that was not sent"));
        assert_eq!(sent.hash, fields_hash, "stream {stream}: another head than was sent");
        assert!(!sent.oversized, "stream {stream}: a head that is larger than it may be");
        direction.header_blocks_received += 1;
        if end {
            direction.receive_end(stream);
        }
    }

    pub(super) fn receive(&mut self, receiver: Side, stream: u32, bytes: &[u8], end: bool) {
        let record = self.record(stream);
        assert_eq!(record.ends[receiver], None, "stream {stream}: DATA after its end");
        let direction = &mut record.directions[receiver.other()];
        assert!(!direction.end_received, "stream {stream}: DATA after END_STREAM");
        assert!(
            direction.received + bytes.len() <= direction.sent_bytes,
            "stream {stream}: more DATA than was sent"
        );
        let expected = pattern::slice_of(body_of(stream, receiver.other()), direction.received, bytes.len());
        assert!(
            expected == bytes,
            "stream {stream}: other bytes than were sent, from {} on",
            direction.received
        );
        direction.received += bytes.len();
        if end {
            direction.receive_end(stream);
        }
    }

    /// Records that a driver reset a stream that is open for it.
    pub(super) fn reset(&mut self, side: Side, stream: u32, code: ErrorCode) {
        self.record(stream).ends[side] = Some(StreamEnd::Reset(code));
    }

    /// Checks a driver's notification that a stream ended.
    pub(super) fn check_reset(&mut self, receiver: Side, stream: u32, cause: ResetCause) {
        let goaways = self.goaways[receiver.other()].clone();
        let record = self.record(stream);
        assert_eq!(record.ends[receiver], None, "stream {stream}: notified of its end twice");
        record.ends[receiver] = Some(StreamEnd::Notified(cause.code));
        assert!(
            !cause.unprocessed || !record.request_received,
            "stream {stream} was processed, though {cause:?}"
        );
        let requested = record.ends[receiver.other()] == Some(StreamEnd::Reset(cause.code));
        let not_served = cause.unprocessed && goaways.contains(&cause.code);
        let refused =
            cause.code == ErrorCode::RefusedStream && cause.unprocessed && record.opened_before_settings;
        let (found_by, sender) = match cause.initiator {
            Initiator::Local => (receiver, receiver.other()),
            Initiator::Peer => (receiver.other(), receiver),
        };
        let too_large =
            cause.code == ErrorCode::EnhanceYourCalm && record.directions[sender].next_is_oversized();
        let justified = match cause.initiator {
            Initiator::Local => too_large,
            Initiator::Peer => requested || not_served || refused || too_large,
        };
        assert!(justified, "stream {stream}: {found_by:?} accuses an honest peer: {cause:?}, {record:?}");
    }

    /// Records that a driver drains or closes the connection.
    pub(super) fn record_goaway(&mut self, side: Side, code: ErrorCode) {
        self.goaways[side].push(code);
    }

    pub(super) fn check_goaway(&mut self, receiver: Side, code: ErrorCode, debug: &[u8]) {
        let sender = receiver.other();
        let requested = self.goaways[sender].contains(&code);
        let debug = String::from_utf8_lossy(debug);
        assert!(requested, "{sender:?} accuses an honest peer: GOAWAY with {code}, {debug}");
    }

    /// Payload of a side's next PING.
    pub(super) fn ping(&mut self, side: Side) -> [u8; 8] {
        self.pings[side].sent += 1;
        self.pings[side].sent.to_be_bytes()
    }

    pub(super) fn check_pong(&mut self, side: Side, payload: [u8; 8]) {
        let pings = &mut self.pings[side];
        pings.acknowledged += 1;
        assert_eq!(payload, pings.acknowledged.to_be_bytes(), "PINGs are answered once and in order");
    }

    /// Records that the connection ended for one side.
    pub(super) fn end_all(&mut self, side: Side) {
        for record in self.streams.values_mut() {
            if !record.has_ended(side) {
                record.ends[side] = Some(StreamEnd::Lost);
            }
        }
    }

    /// Whether the stream has ended for a side.
    pub(super) fn is_over(&self, side: Side, stream: u32) -> bool {
        self.streams[&stream].has_ended(side)
    }

    /// The streams that have not ended for a side.
    pub(super) fn unended(&self, side: Side) -> impl Iterator<Item = u32> {
        // A request that the server's driver never received needs no end there.
        let is_known = move |record: &Record| side == Side::Client || record.request_received;
        self.streams
            .iter()
            .filter(move |(_, record)| is_known(record) && !record.has_ended(side))
            .map(|(&stream, _)| stream)
    }

    /// Checks a quiet world with a live connection: every stream has ended on both sides, and streams that ended
    /// normally were received completely.
    pub(super) fn assert_complete(&self) {
        for side in Side::BOTH {
            let unended: Vec<_> = self.unended(side).collect();
            assert!(
                unended.is_empty(),
                "stalled: streams {unended:?} have not ended for {side:?}: {self:#?}"
            );
            let pings = &self.pings[side];
            assert_eq!(pings.sent, pings.acknowledged, "stalled: PINGs of {side:?} are not answered");
        }
        for (stream, record) in &self.streams {
            for side in Side::BOTH {
                record.assert_agreed(*stream, side);
            }
        }
    }

    fn record(&mut self, stream: u32) -> &mut Record {
        self.streams.get_mut(&stream).unwrap_or_else(|| panic!("stream {stream} was never opened"))
    }
}

impl Record {
    fn has_ended(&self, side: Side) -> bool {
        self.ends[side].is_some()
            || (self.directions[side].ended && self.directions[side.other()].end_received)
    }

    /// Checks that a normally ended stream was received completely. Also checks that the other side was notified of a
    /// reset by `side` unless the stream had ended there.
    fn assert_agreed(&self, stream: u32, side: Side) {
        let (mine, theirs) = (self.ends[side], self.ends[side.other()]);
        if mine.is_none() && theirs.is_none() {
            for direction in &self.directions.0 {
                assert!(
                    direction.end_received && direction.sent_bytes == direction.received,
                    "stream {stream} is incomplete: {self:?}"
                );
            }
        }
        let never_received = side == Side::Client && !self.request_received;
        if matches!(mine, Some(StreamEnd::Reset(_))) && !never_received {
            let ended_normally = theirs.is_none() && self.has_ended(side.other());
            assert!(
                theirs.is_some() || ended_normally,
                "stream {stream}: a reset was not received: {self:?}"
            );
        }
    }
}

impl Direction {
    /// Whether the next headers to receive exceed the limit.
    fn next_is_oversized(&self) -> bool {
        self.header_blocks.get(self.header_blocks_received).is_some_and(|head| head.oversized)
    }

    fn receive_end(&mut self, stream: u32) {
        assert!(!self.end_received, "stream {stream} ends twice");
        assert!(self.ended, "stream {stream} ends, though its sender did not end it");
        assert_eq!(self.received, self.sent_bytes, "stream {stream} ends before its last byte");
        assert_eq!(
            self.header_blocks_received,
            self.header_blocks.len(),
            "stream {stream} ends before its last head"
        );
        self.end_received = true;
    }
}
