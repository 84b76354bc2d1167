//! Changes to inputs: of bytes, and of frames.

use thalweg_http2::frame::{Flags, FrameHead, HEAD_LEN, Kind, PREFACE};

use crate::random::Random;

/// Numbers at which things change.
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
            let again = input[at..end].to_vec();
            input.splice(at..at, again);
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

/// Changes a frame, or their order; now and then only bytes.
pub(super) fn frames(random: &mut Random, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    if random.one_in(8) {
        return bytes(random, input, corpus);
    }
    let mut parsed = Parsed::new(input);
    if parsed.frames.is_empty() {
        parsed.frames.push(invented(random));
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
        4 => parsed.frames.insert(at, invented(random)),
        _ => change(random, &mut parsed.frames[at]),
    }
    *input = parsed.emit();
}

/// One frame. Its length need not be that of its payload.
#[derive(Clone, Debug)]
struct Frame {
    head: FrameHead,
    payload: Vec<u8>,
}

/// An input taken apart.
#[derive(Debug)]
struct Parsed {
    /// The input's first byte, and the preface.
    before: Vec<u8>,
    frames: Vec<Frame>,
    /// What is no whole frame.
    behind: Vec<u8>,
}

impl Parsed {
    fn new(input: &[u8]) -> Parsed {
        let rest = input.get(1..).unwrap_or_default();
        let preface = if rest.starts_with(PREFACE) { PREFACE.len() } else { 0 };
        let (before, mut rest) = input.split_at((1 + preface).min(input.len()));
        let mut frames = Vec::new();
        while let Some((head, behind)) = rest.split_first_chunk::<HEAD_LEN>() {
            let head = FrameHead::parse(head);
            let Some((payload, behind)) = behind.split_at_checked(head.len as usize) else { break };
            frames.push(Frame { head, payload: payload.to_vec() });
            rest = behind;
        }
        Parsed { before: before.to_vec(), frames, behind: rest.to_vec() }
    }

    fn emit(&self) -> Vec<u8> {
        let mut input = self.before.clone();
        for Frame { head, payload } in &self.frames {
            input.extend_from_slice(&head.to_bytes());
            input.extend_from_slice(payload);
        }
        input.extend_from_slice(&self.behind);
        input
    }
}

fn change(random: &mut Random, frame: &mut Frame) {
    match random.below(7) {
        0 => frame.head.flags = Flags(frame.head.flags.0 ^ (1 << random.below(8))),
        1 => frame.head.stream = stream(random),
        2 => frame.head.kind = Kind::from(random.below(11) as u8),
        3 => frame.head.len = random.pick(&INTERESTING) & 0xff_ffff,
        4 => {
            let len = random.size(frame.payload.len() * 2 + 8);
            frame.payload.resize(len, random.number() as u8);
            frame.head.len = len as u32;
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

/// A frame of any kind, mostly of the length that its kind has.
fn invented(random: &mut Random) -> Frame {
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
    Frame { head: FrameHead { len: len as u32, kind, flags, stream }, payload }
}
