//! Mutations of inputs: of bytes, frames, and TLS records.

use thalweg_http2::frame::{FRAME_HEADER_LEN, Flags, FrameHeader, Kind, PREFACE};

use crate::random::Random;

/// Boundary values.
const INTERESTING: [u32; 12] =
    [0, 1, 2, 5, 255, 16_384, 16_385, 65_535, 65_536, 0x7fff_ffff, 0x8000_0000, u32::MAX];

/// Changes a few bytes.
pub(super) fn bytes(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if input.is_empty() {
        input.push(random.number() as u8);
    }
    let at = random.below(input.len());
    let end = at + random.size(input.len() - at);
    match random.below(7) {
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.number() as u8,
        2 => input[at] = input[at].wrapping_add(random.pick(&[1, 255])),
        3 => drop(input.drain(at..end)),
        4 => {
            let copy = input[at..end].to_vec();
            input.splice(at..at, copy);
        }
        5 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let part = &other[from..from + random.size(other.len() - from)];
            input.splice(at..end, part.iter().copied());
        }
        _ => {
            let number = random.pick(&INTERESTING).to_be_bytes();
            let len = number.len().min(input.len() - at);
            input[at..at + len].copy_from_slice(&number[..len]);
        }
    }
}

/// Changes a frame or the order of frames; sometimes only bytes.
pub(super) fn frames(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if random.one_in(8) {
        return bytes(random, input, corpus);
    }
    let mut parsed = Parsed::new(input);
    if parsed.frames.is_empty() {
        parsed.frames.push(random_frame(random));
    }
    let at = random.below(parsed.frames.len());
    match random.below(9) {
        0 => drop(parsed.frames.remove(at)),
        1 => parsed.frames.insert(at, parsed.frames[at].clone()),
        2 => {
            let other = random.below(parsed.frames.len());
            parsed.frames.swap(at, other);
        }
        3 => {
            let other = Parsed::new(&corpus[random.below(corpus.len())]);
            if !other.frames.is_empty() {
                let frame = other.frames[random.below(other.frames.len())].clone();
                parsed.frames.insert(at, frame);
            }
        }
        4 => parsed.frames.insert(at, random_frame(random)),
        _ => change(random, &mut parsed.frames[at]),
    }
    *input = parsed.emit();
}

/// Changes a TLS record or the order of records; sometimes only bytes.
pub(super) fn records(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if random.one_in(8) {
        return bytes(random, input, corpus);
    }
    let mut records = split_records(input);
    if records.len() < 2 {
        records.push(random_record(random));
    }
    // The part before the first record is changed only by `bytes`.
    let at = random.between(1, records.len() - 1);
    match random.below(10) {
        0 => drop(records.remove(at)),
        1 => records.insert(at, records[at].clone()),
        2 => {
            let other = random.between(1, records.len() - 1);
            records.swap(at, other);
        }
        3 => {
            let others = split_records(&corpus[random.below(corpus.len())]);
            records.insert(at, others[random.below(others.len())].clone());
        }
        4 => records.insert(at, random_record(random)),
        // Cut here, sometimes with a random record after it.
        5 => {
            records.truncate(at);
            if random.one_in(2) {
                records.push(random_record(random));
            }
        }
        6 => {
            let end = random.size(records[at].len());
            records[at].truncate(end);
        }
        7 if records[at].len() > RECORD_HEADER_LEN => split_record(random, &mut records, at),
        8 => {
            let byte = random.below(records[at].len().min(RECORD_HEADER_LEN));
            if let Some(byte) = records[at].get_mut(byte) {
                *byte = random.number() as u8;
            }
        }
        _ => {
            let byte = random.below(records[at].len());
            if let Some(byte) = records[at].get_mut(byte) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
    *input = records.concat();
}

/// Length of a TLS record's header: kind, version, and length (RFC 8446 §5.1).
const RECORD_HEADER_LEN: usize = 5;

/// Splits an input into the part before the records, and the records; the last may be incomplete.
fn split_records(input: &[u8]) -> Vec<Vec<u8>> {
    let (before, mut rest) = input.split_at(super::tls::MODE_LEN.min(input.len()));
    let mut records = vec![before.to_vec()];
    while let [_, _, _, high, low, ..] = rest {
        let len = RECORD_HEADER_LEN + usize::from(u16::from_be_bytes([*high, *low]));
        let (record, after) = rest.split_at(len.min(rest.len()));
        records.push(record.to_vec());
        rest = after;
    }
    if !rest.is_empty() {
        records.push(rest.to_vec());
    }
    records
}

/// Splits a record in two, so that a handshake message spans both.
fn split_record(random: &mut Random, records: &mut Vec<Vec<u8>>, at: usize) {
    let (header, payload) = records[at].split_at(RECORD_HEADER_LEN);
    let (first, second) = payload.split_at(random.size(payload.len()));
    let part = |payload: &[u8]| [&header[..3], &(payload.len() as u16).to_be_bytes(), payload].concat();
    let parts = [part(first), part(second)];
    records.splice(at..=at, parts);
}

/// A record of any kind, valid or not.
fn random_record(random: &mut Random) -> Vec<u8> {
    let kind = random.pick(&[20, 21, 22, 22, 22, 23, 23, 24, 0, 255]);
    let len = random.size(20_000);
    let declared_len = if random.one_in(4) { random.size(0xffff) } else { len };
    let mut record = vec![kind, 3, random.pick(&[1, 3, 3, 3, 4])];
    record.extend_from_slice(&(declared_len as u16).to_be_bytes());
    let fill = random.number() as u8;
    record.resize(RECORD_HEADER_LEN + len, fill);
    if kind == 22 && len >= 4 {
        // A handshake message (RFC 8446 §4), which may be longer than its record.
        let message_len = random.pick(&INTERESTING).min(0xff_ffff).to_be_bytes();
        record[RECORD_HEADER_LEN] = random.pick(&[0, 1, 2, 4, 8, 11, 13, 15, 20, 24]);
        record[RECORD_HEADER_LEN + 1..][..3].copy_from_slice(&message_len[1..]);
    }
    record
}

/// One frame. Its length may differ from its payload's.
#[derive(Clone, Debug)]
struct Frame {
    header: FrameHeader,
    payload: Vec<u8>,
}

/// A parsed input.
#[derive(Debug)]
struct Parsed {
    /// The input's first byte, and the preface.
    before: Vec<u8>,
    frames: Vec<Frame>,
    /// Trailing bytes that do not form a frame.
    after: Vec<u8>,
}

impl Parsed {
    fn new(input: &[u8]) -> Parsed {
        let rest = input.get(1..).unwrap_or_default();
        let preface = if rest.starts_with(PREFACE) { PREFACE.len() } else { 0 };
        let (before, mut rest) = input.split_at((1 + preface).min(input.len()));
        let mut frames = Vec::new();
        while let Some((header, after)) = rest.split_first_chunk::<FRAME_HEADER_LEN>() {
            let header = FrameHeader::parse(header);
            let Some((payload, after)) = after.split_at_checked(header.len as usize) else { break };
            frames.push(Frame { header, payload: payload.to_vec() });
            rest = after;
        }
        Parsed { before: before.to_vec(), frames, after: rest.to_vec() }
    }

    fn emit(&self) -> Vec<u8> {
        let mut input = self.before.clone();
        for Frame { header, payload } in &self.frames {
            input.extend_from_slice(&header.to_bytes());
            input.extend_from_slice(payload);
        }
        input.extend_from_slice(&self.after);
        input
    }
}

fn change(random: &mut Random, frame: &mut Frame) {
    match random.below(7) {
        0 => frame.header.flags = Flags(frame.header.flags.0 ^ (1 << random.below(8))),
        1 => frame.header.stream = stream(random),
        2 => frame.header.kind = Kind::from(random.below(11) as u8),
        3 => frame.header.len = random.pick(&INTERESTING) & 0xff_ffff,
        4 => {
            let len = random.size(frame.payload.len() * 2 + 8);
            frame.payload.resize(len, random.number() as u8);
            frame.header.len = len as u32;
        }
        5 if frame.payload.len() >= 4 => {
            let at = random.below(frame.payload.len() - 3);
            frame.payload[at..at + 4].copy_from_slice(&random.pick(&INTERESTING).to_be_bytes());
        }
        _ => {
            let len = frame.payload.len();
            if let Some(byte) = frame.payload.get_mut(random.below(len)) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

fn stream(random: &mut Random) -> thalweg_http2::StreamId {
    let number = match random.below(6) {
        0 => 0,
        1 => random.below(40) as u32,
        2 => random.pick(&INTERESTING),
        _ => random.below(12) as u32 * 2 + 1,
    };
    thalweg_http2::StreamId::new(number)
}

/// A frame of any kind, mostly with the length for its kind.
fn random_frame(random: &mut Random) -> Frame {
    let kind = Kind::from(random.below(11) as u8);
    let len = match kind {
        Kind::Priority => 5,
        Kind::RstStream | Kind::WindowUpdate => 4,
        Kind::Settings => 6 * random.below(4),
        Kind::Ping | Kind::GoAway => 8,
        _ => random.size(300),
    };
    let len = if random.one_in(10) { random.size(50) } else { len };
    let mut payload: Vec<u8> = (0..len).map(|_| random.number() as u8).collect();
    for setting in payload.chunks_exact_mut(6).filter(|_| kind == Kind::Settings) {
        setting[0] = 0;
        setting[1] = random.below(10) as u8;
        setting[2..].copy_from_slice(&random.pick(&INTERESTING).to_be_bytes());
    }
    if kind == Kind::WindowUpdate && len == 4 {
        payload.copy_from_slice(&random.pick(&INTERESTING).to_be_bytes());
    }
    let of_connection = matches!(kind, Kind::Settings | Kind::Ping | Kind::GoAway);
    let stream = if of_connection { thalweg_http2::StreamId::CONNECTION } else { stream(random) };
    let flags = Flags(random.pick(&[0, 1, 4, 5, 5, 0x0d, 0x25, 0xff]));
    Frame { header: FrameHeader { len: len as u32, kind, flags, stream }, payload }
}
