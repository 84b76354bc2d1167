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
    farewells: Both<Vec<ErrorCode>>,
    pings: Both<Pings>,
}

#[derive(Debug, Default)]
struct Pings {
    sent: u64,
    answered: u64,
}

/// One stream.
#[derive(Debug, Default)]
struct Record {
    /// Data sent by each side.
    voices: Both<Voice>,
    /// Abnormal end of the stream for each side.
    ends: Both<Option<End>>,
    /// The server's driver received the request.
    surfaced: bool,
    /// The client did not know the server's SETTINGS when it opened the stream.
    opened_blind: bool,
}

/// One direction of a stream.
#[derive(Debug, Default)]
struct Voice {
    /// In order: informational headers, the headers, trailers.
    heads: Vec<SentHead>,
    heads_heard: usize,
    /// Bytes accepted by the connection, and bytes received by the other side's driver.
    said: usize,
    heard: usize,
    ended: bool,
    end_heard: bool,
}

#[derive(Clone, Copy, Debug)]
struct SentHead {
    hash: u64,
    /// It exceeds the other side's limit.
    oversized: bool,
}

/// End of a stream for one side, other than by two END_STREAMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its driver reset it.
    Reset(ErrorCode),
    /// Its driver was notified.
    Told(ErrorCode),
    /// The connection ended.
    Lost,
}

/// The body that a side sends on a stream.
pub(super) fn body_of(stream: u32, speaker: Side) -> u64 {
    u64::from(stream) << 1 | u64::from(speaker)
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
    pub(super) fn open(&mut self, stream: u32, opened_blind: bool) {
        let Entry::Vacant(place) = self.streams.entry(stream) else {
            panic!("stream {stream} is opened twice")
        };
        place.insert(Record { opened_blind, ..Record::default() });
    }

    /// Records accepted headers, informational headers or trailers.
    pub(super) fn say_head(
        &mut self,
        speaker: Side,
        stream: u32,
        fields: &FieldList,
        list_size_max: u32,
        end: bool,
    ) {
        let voice = &mut self.record(stream).voices[speaker];
        let oversized = fields.size() > list_size_max as usize;
        voice.heads.push(SentHead { hash: hash_fields(fields.iter()), oversized });
        voice.ended |= end;
    }

    /// Records accepted bytes.
    pub(super) fn say(&mut self, speaker: Side, stream: u32, len: usize, end: bool) {
        let voice = &mut self.record(stream).voices[speaker];
        assert!(!voice.ended, "the connection accepts bytes behind END_STREAM");
        voice.said += len;
        voice.ended |= end;
    }

    /// Bytes sent so far.
    pub(super) fn said(&mut self, speaker: Side, stream: u32) -> usize {
        self.record(stream).voices[speaker].said
    }

    pub(super) fn hear_head(&mut self, listener: Side, stream: u32, fields_hash: u64, end: bool) {
        let record = self.record(stream);
        record.surfaced |= listener == Side::Server;
        assert_eq!(record.ends[listener], None, "stream {stream}: a head after its end");
        let voice = &mut record.voices[listener.other()];
        let said = voice.heads.get(voice.heads_heard).copied();
        let said = said.unwrap_or_else(|| panic!("stream {stream}: a head that was not sent"));
        assert_eq!(said.hash, fields_hash, "stream {stream}: another head than was sent");
        assert!(!said.oversized, "stream {stream}: a head that is larger than it may be");
        voice.heads_heard += 1;
        if end {
            voice.hear_end(stream);
        }
    }

    pub(super) fn hear(&mut self, listener: Side, stream: u32, bytes: &[u8], end: bool) {
        let record = self.record(stream);
        assert_eq!(record.ends[listener], None, "stream {stream}: DATA after its end");
        let voice = &mut record.voices[listener.other()];
        assert!(!voice.end_heard, "stream {stream}: DATA after END_STREAM");
        assert!(voice.heard + bytes.len() <= voice.said, "stream {stream}: more DATA than was sent");
        let expected = pattern::stretch(body_of(stream, listener.other()), voice.heard, bytes.len());
        assert!(expected == bytes, "stream {stream}: other bytes than were sent, from {} on", voice.heard);
        voice.heard += bytes.len();
        if end {
            voice.hear_end(stream);
        }
    }

    /// Records that a driver reset a stream that is open for it.
    pub(super) fn reset(&mut self, side: Side, stream: u32, code: ErrorCode) {
        self.record(stream).ends[side] = Some(End::Reset(code));
    }

    /// Checks a driver's notification that a stream ended.
    pub(super) fn hear_reset(&mut self, listener: Side, stream: u32, cause: ResetCause) {
        let left = self.farewells[listener.other()].clone();
        let record = self.record(stream);
        assert_eq!(record.ends[listener], None, "stream {stream}: told of its end twice");
        record.ends[listener] = Some(End::Told(cause.code));
        assert!(!cause.unprocessed || !record.surfaced, "stream {stream} was processed, though {cause:?}");
        let asked_for = record.ends[listener.other()] == Some(End::Reset(cause.code));
        let not_served = cause.unprocessed && left.contains(&cause.code);
        let refused = cause.code == ErrorCode::RefusedStream && cause.unprocessed && record.opened_blind;
        let (found_by, speaker) = match cause.initiator {
            Initiator::Local => (listener, listener.other()),
            Initiator::Peer => (listener.other(), listener),
        };
        let too_large =
            cause.code == ErrorCode::EnhanceYourCalm && record.voices[speaker].next_is_oversized();
        let honest = match cause.initiator {
            Initiator::Local => too_large,
            Initiator::Peer => asked_for || not_served || refused || too_large,
        };
        assert!(honest, "stream {stream}: {found_by:?} accuses an honest peer: {cause:?}, {record:?}");
    }

    /// Records that a driver drains or closes the connection.
    pub(super) fn say_farewell(&mut self, side: Side, code: ErrorCode) {
        self.farewells[side].push(code);
    }

    pub(super) fn hear_farewell(&mut self, listener: Side, code: ErrorCode, debug: &[u8]) {
        let speaker = listener.other();
        let asked_for = self.farewells[speaker].contains(&code);
        let debug = String::from_utf8_lossy(debug);
        assert!(asked_for, "{speaker:?} accuses an honest peer: GOAWAY with {code}, {debug}");
    }

    /// Payload of a side's next PING.
    pub(super) fn ping(&mut self, side: Side) -> [u8; 8] {
        self.pings[side].sent += 1;
        self.pings[side].sent.to_be_bytes()
    }

    pub(super) fn hear_pong(&mut self, side: Side, payload: [u8; 8]) {
        let pings = &mut self.pings[side];
        pings.answered += 1;
        assert_eq!(payload, pings.answered.to_be_bytes(), "PINGs are answered once and in order");
    }

    /// Records that the connection ended for one side.
    pub(super) fn lose_all(&mut self, side: Side) {
        for record in self.streams.values_mut() {
            if !record.has_ended(side) {
                record.ends[side] = Some(End::Lost);
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
        let concerns = move |record: &Record| side == Side::Client || record.surfaced;
        self.streams
            .iter()
            .filter(move |(_, record)| concerns(record) && !record.has_ended(side))
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
            assert_eq!(pings.sent, pings.answered, "stalled: PINGs of {side:?} are not answered");
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
        self.ends[side].is_some() || (self.voices[side].ended && self.voices[side.other()].end_heard)
    }

    /// Checks that a normally ended stream was received completely. Also checks that the other side was notified of a
    /// reset by `side` unless the stream had ended there.
    fn assert_agreed(&self, stream: u32, side: Side) {
        let (mine, theirs) = (self.ends[side], self.ends[side.other()]);
        if mine.is_none() && theirs.is_none() {
            for voice in &self.voices.0 {
                assert!(
                    voice.end_heard && voice.said == voice.heard,
                    "stream {stream} is incomplete: {self:?}"
                );
            }
        }
        let unheard = side == Side::Client && !self.surfaced;
        if matches!(mine, Some(End::Reset(_))) && !unheard {
            let ended_well = theirs.is_none() && self.has_ended(side.other());
            assert!(theirs.is_some() || ended_well, "stream {stream}: a reset was not heard of: {self:?}");
        }
    }
}

impl Voice {
    /// Whether the next headers to receive exceed the limit.
    fn next_is_oversized(&self) -> bool {
        self.heads.get(self.heads_heard).is_some_and(|head| head.oversized)
    }

    fn hear_end(&mut self, stream: u32) {
        assert!(!self.end_heard, "stream {stream} ends twice");
        assert!(self.ended, "stream {stream} ends, though its sender did not end it");
        assert_eq!(self.heard, self.said, "stream {stream} ends before its last byte");
        assert_eq!(self.heads_heard, self.heads.len(), "stream {stream} ends before its last head");
        self.end_heard = true;
    }
}
