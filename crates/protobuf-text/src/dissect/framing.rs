//! How messages lie in a file: one alone, or several with something before each.

use super::read::{Limits, is_message};
use super::span::Span;
use super::varint::{Varint, read_varint};

/// The flags and the length before a message of gRPC.
const GRPC_PREFIX_LEN: usize = 5;

/// How messages are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Not at all: one message, as long as the input.
    Protobuf,
    /// A byte of flags (1: compressed) and four of length, the highest first, before each message.
    Grpc,
    /// A varint of length before each message.
    Delimited,
}

impl Framing {
    /// All of them.
    pub const ALL: [Framing; 3] = [Framing::Protobuf, Framing::Grpc, Framing::Delimited];

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Framing::Protobuf => "protobuf",
            Framing::Grpc => "grpc",
            Framing::Delimited => "delimited",
        }
    }
}

/// What stands before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Nothing.
    None,
    /// Of [`Framing::Grpc`].
    Grpc {
        /// 0 or 1 in gRPC.
        flags: u8,
        /// How many bytes follow, as it says.
        length: u32,
    },
    /// Of [`Framing::Delimited`].
    Delimited(Varint),
}

/// The flag of a compressed message.
pub const COMPRESSED: u8 = 1;
/// The flag with which a stream of Connect ends: what follows is JSON.
pub const CONNECT_END: u8 = 2;
/// The flag of gRPC-Web's trailers: what follows is lines of text.
pub const WEB_TRAILERS: u8 = 0x80;

/// A message and what stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The prefix.
    pub prefix: Prefix,
    /// Where the prefix lies.
    pub prefix_span: Span,
    /// Where the message lies: all that is there of it.
    pub payload: Span,
    /// The input ends before the message does: how many bytes there should be.
    pub missing_of: Option<u64>,
}

/// An input cut into frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    /// In their order.
    pub frames: Vec<Frame>,
    /// What is no frame, at the end.
    pub rest: Span,
    /// Why that is no frame.
    pub problem: Option<String>,
}

impl Frames {
    /// Each frame is there to its end, and nothing else is.
    fn are_whole(&self) -> bool {
        self.problem.is_none() && self.frames.iter().all(|frame| frame.missing_of.is_none())
    }
}

/// Cuts the input into messages; `limits` bounds how many.
pub fn split(input: &[u8], framing: Framing, limits: &Limits) -> Frames {
    let all = Span::all(input);
    let mut frames = Frames { frames: Vec::new(), rest: Span { start: input.len(), ..all }, problem: None };
    let next = match framing {
        Framing::Protobuf => {
            let prefix_span = Span { start: 0, end: 0 };
            frames.frames.push(Frame { prefix: Prefix::None, prefix_span, payload: all, missing_of: None });
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
            Err(format!(
                "there are more than {} messages; what follows is not taken apart",
                limits.records_max
            ))
        };
        match prefix {
            Ok((prefix, length, prefix_end)) => {
                let left = input.len() - prefix_end;
                let len = usize::try_from(length).unwrap_or(usize::MAX).min(left);
                let payload = Span { start: prefix_end, end: prefix_end + len };
                let missing_of = (length > left as u64).then_some(length);
                frames.frames.push(Frame {
                    prefix,
                    prefix_span: Span { start, end: prefix_end },
                    payload,
                    missing_of,
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

/// A prefix, the length that it says, and the offset behind it.
type Read = Result<(Prefix, u64, usize), String>;

fn grpc_prefix(input: &[u8], start: usize) -> Read {
    let bytes = input.get(start..).unwrap_or_default();
    let Some([flags, length @ ..]) = bytes.first_chunk::<GRPC_PREFIX_LEN>() else {
        return Err(format!(
            "a message of gRPC begins with 5 bytes, and there are only {} more",
            bytes.len()
        ));
    };
    if flags & !(COMPRESSED | CONNECT_END | WEB_TRAILERS) != 0 {
        return Err(format!(
            "a message of gRPC begins with the flags 0 or 1 (or 2 or 128, of Connect and gRPC-Web), not {flags}"
        ));
    }
    let length = u32::from_be_bytes(*length);
    Ok((Prefix::Grpc { flags: *flags, length }, length.into(), start + GRPC_PREFIX_LEN))
}

fn delimited_prefix(input: &[u8], start: usize) -> Read {
    match read_varint(input.get(start..).unwrap_or_default(), start) {
        Ok(varint) if varint.overflows => Err("a length of more than 64 bits".to_owned()),
        Ok(varint) => Ok((Prefix::Delimited(varint), varint.value, varint.span.end)),
        Err(true) => Err("the length of the next message goes on after 10 bytes".to_owned()),
        Err(false) => Err("the length of the next message is cut off".to_owned()),
    }
}

/// How an input is framed, by its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// The likeliest.
    pub framing: Framing,
    /// Why.
    pub reason: String,
    /// Others that fit as well.
    pub others: Vec<Framing>,
    /// It fits from the first to the last byte.
    pub fits: bool,
}

/// Looks for the framing that fits from the first to the last byte.
///
/// `fits` says whether a message is what the caller knows it to be; without a schema, `|_| true`.
pub fn detect(input: &[u8], limits: &Limits, fits: impl Fn(Span) -> bool) -> Detection {
    let whole = |framing| {
        let frames = split(input, framing, limits);
        frames.are_whole()
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
        return detected(Framing::Protobuf, "nothing is a message without fields", Vec::new());
    }
    let fitting: Vec<Framing> = Framing::ALL.into_iter().filter(|framing| whole(*framing)).collect();
    match fitting.split_first() {
        Some((framing @ Framing::Protobuf, others)) => {
            let reason = "all bytes are fields of one message";
            detected(*framing, reason, others.to_vec())
        }
        Some((framing @ Framing::Grpc, _)) => {
            // With lengths, 00 00 00 00 would be four messages without fields: possible, and not what anybody means.
            let reason = "flags and length of gRPC lead from message to message, to the end";
            detected(*framing, reason, Vec::new())
        }
        Some((framing @ Framing::Delimited, others)) => {
            let reason = "lengths lead from message to message, to the end";
            detected(*framing, reason, others.to_vec())
        }
        // No message begins with these bytes: there is no field 0.
        None if matches!(input, [0 | 1, _, _, _, _, ..]) => {
            let reason = "no message begins with 00 or 01, but gRPC's prefix does";
            Detection { fits: false, ..detected(Framing::Grpc, reason, Vec::new()) }
        }
        None => {
            let reason = "no framing fits to the last byte";
            Detection { fits: false, ..detected(Framing::Protobuf, reason, Vec::new()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"\x0a\x0dpolar penguin\x10\x14";

    #[test]
    fn framings_are_told_apart() {
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
        // Cut off, and yet gRPC's.
        check(b"\0\0\0\0\x11\x0a\x0d", Framing::Grpc, &[]);
        check(b"\x0a\x0dpolar", Framing::Protobuf, &[]);
        check(b"\x02\x08\x01\x02\x08\x01", Framing::Delimited, &[]);
        // Nine fields, or two messages of four fields.
        check(&[8; 18], Framing::Protobuf, &[Framing::Delimited]);
    }

    #[test]
    fn frames_that_are_cut_off_say_what_is_missing() {
        let frames = split(b"\0\0\0\0\x02\x08\x01\0\0\0\x01\0ab", Framing::Grpc, &Limits::default());
        assert!(!frames.are_whole());
        let [first, second] = frames.frames[..] else { panic!("{frames:?}") };
        assert_eq!((first.payload, first.missing_of), (Span { start: 5, end: 7 }, None));
        assert_eq!((second.payload, second.missing_of), (Span { start: 12, end: 14 }, Some(256)));

        let frames = split(b"\0\0\0\0\0\0\0", Framing::Grpc, &Limits::default());
        assert_eq!((frames.frames.len(), frames.rest), (1, Span { start: 5, end: 7 }));
        assert!(frames.problem.is_some_and(|problem| problem.contains("only 2 more")));

        let frames = split(b"\x07\0\0\0\0", Framing::Grpc, &Limits::default());
        assert!(frames.problem.is_some_and(|problem| problem.contains("not 7")));
        let frames = split(&[0xff; 12], Framing::Delimited, &Limits::default());
        assert!(frames.problem.is_some_and(|problem| problem.contains("10 bytes")));
    }
}
