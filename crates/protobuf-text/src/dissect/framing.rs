//! Framing of messages in an input: a single message, or several with a prefix each.

use super::read::{Limits, is_message};
use super::span::Span;
use super::varint::{Varint, read_varint};

/// Length of gRPC's message prefix: flags and length.
const GRPC_PREFIX_LEN: usize = 5;

/// A framing of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// No framing: one message, as long as the input.
    Protobuf,
    /// A byte of flags (1: compressed) and a big-endian 4-byte length before each message.
    Grpc,
    /// A varint length before each message.
    Delimited,
}

impl Framing {
    /// All framings.
    pub const ALL: [Framing; 3] = [Framing::Protobuf, Framing::Grpc, Framing::Delimited];

    /// Returns a short name.
    pub fn name(self) -> &'static str {
        match self {
            Framing::Protobuf => "protobuf",
            Framing::Grpc => "grpc",
            Framing::Delimited => "delimited",
        }
    }
}

/// The prefix of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// No prefix.
    None,
    /// Prefix of [`Framing::Grpc`].
    Grpc {
        /// Flags; 0 or 1 in gRPC.
        flags: u8,
        /// The declared length of the message.
        length: u32,
    },
    /// Prefix of [`Framing::Delimited`].
    Delimited(Varint),
}

/// Flag of a compressed message.
pub const COMPRESSED: u8 = 1;
/// Flag of a Connect stream's last message, which is JSON.
pub const CONNECT_END: u8 = 2;
/// Flag of gRPC-Web's trailers, which are lines of text.
pub const WEB_TRAILERS: u8 = 0x80;

/// A message and its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The prefix.
    pub prefix: Prefix,
    /// Position of the prefix.
    pub prefix_span: Span,
    /// Position of the available bytes of the message.
    pub payload: Span,
    /// The declared length, if the input ends before the message does.
    pub truncated_from: Option<u64>,
}

/// An input split into frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    /// The frames, in order.
    pub frames: Vec<Frame>,
    /// The remaining bytes that are not a frame.
    pub rest: Span,
    /// The reason why the rest is not a frame.
    pub problem: Option<String>,
}

impl Frames {
    /// Whether all frames are complete and nothing else remains.
    fn are_complete(&self) -> bool {
        self.problem.is_none() && self.frames.iter().all(|frame| frame.truncated_from.is_none())
    }
}

/// Splits the input into at most `limits.records_max` messages.
pub fn split(input: &[u8], framing: Framing, limits: &Limits) -> Frames {
    let all = Span::all(input);
    let mut frames = Frames { frames: Vec::new(), rest: Span { start: input.len(), ..all }, problem: None };
    let next = match framing {
        Framing::Protobuf => {
            let prefix_span = Span { start: 0, end: 0 };
            frames.frames.push(Frame {
                prefix: Prefix::None,
                prefix_span,
                payload: all,
                truncated_from: None,
            });
            return frames;
        }
        Framing::Grpc => grpc_prefix,
        Framing::Delimited => delimited_prefix,
    };
    let mut start = 0;
    while start < input.len() {
        let prefix = if frames.frames.len() < limits.records_max {
            next(input, start)
        } else {
            Err(format!("more than {} messages; the rest is not decoded", limits.records_max))
        };
        match prefix {
            Ok((prefix, length, prefix_end)) => {
                let left = input.len() - prefix_end;
                let len = usize::try_from(length).unwrap_or(usize::MAX).min(left);
                let payload = Span { start: prefix_end, end: prefix_end + len };
                let truncated_from = (length > left as u64).then_some(length);
                frames.frames.push(Frame {
                    prefix,
                    prefix_span: Span { start, end: prefix_end },
                    payload,
                    truncated_from,
                });
                start = payload.end;
            }
            Err(problem) => {
                frames.rest.start = start;
                frames.problem = Some(problem);
                break;
            }
        }
    }
    frames
}

/// A prefix, its declared length, and the offset after it.
type Read = Result<(Prefix, u64, usize), String>;

fn grpc_prefix(input: &[u8], start: usize) -> Read {
    let bytes = input.get(start..).unwrap_or_default();
    let Some([flags, length @ ..]) = bytes.first_chunk::<GRPC_PREFIX_LEN>() else {
        return Err(format!("expected the 5-byte gRPC prefix, found {} bytes", bytes.len()));
    };
    if flags & !(COMPRESSED | CONNECT_END | WEB_TRAILERS) != 0 {
        return Err(format!(
            "expected gRPC flags 0 or 1 (Connect and gRPC-Web: also 2 or 128), found {flags}"
        ));
    }
    let length = u32::from_be_bytes(*length);
    Ok((Prefix::Grpc { flags: *flags, length }, length.into(), start + GRPC_PREFIX_LEN))
}

fn delimited_prefix(input: &[u8], start: usize) -> Read {
    match read_varint(input.get(start..).unwrap_or_default(), start) {
        Ok(varint) if varint.overflows => Err("message length exceeds 64 bits".to_owned()),
        Ok(varint) => Ok((Prefix::Delimited(varint), varint.value, varint.span.end)),
        Err(true) => Err("message length is longer than 10 bytes".to_owned()),
        Err(false) => Err("message length is truncated".to_owned()),
    }
}

/// The framing detected from an input's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The most likely framing.
    pub framing: Framing,
    /// The reason for it.
    pub reason: String,
    /// Other framings that also fit.
    pub others: Vec<Framing>,
    /// Whether it fits from the first to the last byte.
    pub fits: bool,
}

/// Detects the framing that fits from the first to the last byte.
///
/// `fits` decides whether a message has the type that the caller expects; without a schema, pass `|_| true`.
pub fn detect(input: &[u8], limits: &Limits, fits: impl Fn(Span) -> bool) -> Detection {
    let is_complete = |framing| {
        let frames = split(input, framing, limits);
        frames.are_complete()
            && frames.frames.iter().all(|frame| {
                if let Prefix::Grpc { flags: 1.., .. } = frame.prefix {
                    true
                } else {
                    is_message(input, frame.payload, limits) && fits(frame.payload)
                }
            })
    };
    let detected =
        |framing, reason: &str, others| Detection { framing, reason: reason.to_owned(), others, fits: true };
    if input.is_empty() {
        return detected(Framing::Protobuf, "the input is empty", Vec::new());
    }
    let complete: Vec<Framing> = Framing::ALL.into_iter().filter(|framing| is_complete(*framing)).collect();
    match complete.split_first() {
        Some((framing @ Framing::Protobuf, others)) => {
            let reason = "all bytes are fields of one message";
            detected(*framing, reason, others.to_vec())
        }
        Some((framing @ Framing::Grpc, _)) => {
            // With length prefixes, 00 00 00 00 would be four empty messages: possible, but never intended.
            let reason = "gRPC prefixes match up to the last byte";
            detected(*framing, reason, Vec::new())
        }
        Some((framing @ Framing::Delimited, others)) => {
            let reason = "length prefixes match up to the last byte";
            detected(*framing, reason, others.to_vec())
        }
        // No message starts with these bytes: field number 0 is invalid.
        None if matches!(input, [0 | 1, _, _, _, _, ..]) => {
            let reason = "a gRPC prefix starts with 00 or 01, which no message does";
            Detection { fits: false, ..detected(Framing::Grpc, reason, Vec::new()) }
        }
        None => {
            let reason = "no framing matches up to the last byte";
            Detection { fits: false, ..detected(Framing::Protobuf, reason, Vec::new()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"\x0a\x0dpolar penguin\x10\x14";

    #[test]
    fn framings_are_detected() {
        let check = |input: &[u8], framing: Framing, others: &[Framing]| {
            let detection = detect(input, &Limits::default(), |_| true);
            assert_eq!((detection.framing, &detection.others[..]), (framing, others), "{input:02x?}");
        };
        check(b"", Framing::Protobuf, &[]);
        check(MESSAGE, Framing::Protobuf, &[]);
        check(&[b"\0\0\0\0\x11", MESSAGE].concat(), Framing::Grpc, &[]);
        check(&[b"\0\0\0\0\x11", MESSAGE, b"\0\0\0\0\0"].concat(), Framing::Grpc, &[]);
        check(b"\x01\0\0\0\x02\x1f\x8b", Framing::Grpc, &[]);
        check(&[b"\x11", MESSAGE, b"\x11", MESSAGE].concat(), Framing::Delimited, &[]);
        // Truncated, but still recognised as gRPC.
        check(b"\0\0\0\0\x11\x0a\x0d", Framing::Grpc, &[]);
        check(b"\x0a\x0dpolar", Framing::Protobuf, &[]);
        check(b"\x02\x08\x01\x02\x08\x01", Framing::Delimited, &[]);
        // Nine fields, or two messages of four fields.
        check(&[8; 18], Framing::Protobuf, &[Framing::Delimited]);
    }

    #[test]
    fn truncated_frames_report_the_declared_length() {
        let frames = split(b"\0\0\0\0\x02\x08\x01\0\0\0\x01\0ab", Framing::Grpc, &Limits::default());
        assert!(!frames.are_complete());
        let [first, second] = frames.frames[..] else { panic!("{frames:?}") };
        assert_eq!((first.payload, first.truncated_from), (Span { start: 5, end: 7 }, None));
        assert_eq!((second.payload, second.truncated_from), (Span { start: 12, end: 14 }, Some(256)));

        let frames = split(b"\0\0\0\0\0\0\0", Framing::Grpc, &Limits::default());
        assert_eq!((frames.frames.len(), frames.rest), (1, Span { start: 5, end: 7 }));
        assert!(frames.problem.is_some_and(|problem| problem.contains("found 2 bytes")));

        let frames = split(b"\x07\0\0\0\0", Framing::Grpc, &Limits::default());
        assert!(frames.problem.is_some_and(|problem| problem.contains("found 7")));
        let frames = split(&[0xff; 12], Framing::Delimited, &Limits::default());
        assert!(frames.problem.is_some_and(|problem| problem.contains("10 bytes")));
    }
}
