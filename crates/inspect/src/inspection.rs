//! Results of inspecting an input.

use thalweg_protobuf::MessageType;
use thalweg_protobuf_text::dissect::framing::{Detection, Frames, Framing, detect, split};
use thalweg_protobuf_text::dissect::{Limits, Message, Span, dissect};

use crate::compressed::DecodedFrame;
use crate::input::Input;

/// A decoded input.
#[derive(Debug)]
pub struct Inspection<'a> {
    pub(crate) input: &'a Input,
    pub(crate) message_type: Option<MessageType<'a>>,
    pub(crate) framing: Framing,
    /// `None` if the framing was given.
    pub(crate) detection: Option<Detection>,
    pub(crate) frames: Vec<DecodedFrame<'a>>,
    /// Bytes at the end that are not a frame, and why.
    pub(crate) rest: Span,
    pub(crate) rest_problem: Option<String>,
}

impl<'a> Inspection<'a> {
    /// Decodes an input. Messages have the type `message_type`, if known. Without `framing`, it is detected.
    pub fn of(input: &'a Input, message_type: Option<MessageType<'a>>, framing: Option<Framing>) -> Self {
        let limits = Limits::default();
        let detection = framing.is_none().then(|| detected(&input.bytes, message_type, &limits));
        let given = framing.unwrap_or(Framing::Protobuf);
        let framing = detection.as_ref().map_or(given, |detection| detection.framing);
        let Frames { frames, rest, problem, .. } = split(&input.bytes, framing, &limits);
        let open = |frame| DecodedFrame::new(&input.bytes, frame, message_type, &limits);
        let frames = frames.into_iter().map(open).collect();
        Self { input, message_type, framing, detection, frames, rest, rest_problem: problem }
    }
    /// Returns all messages, each with the bytes that it refers to.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (&Message<'_>, &[u8])> {
        self.frames.iter().filter_map(|decoded| decoded.message(&self.input.bytes))
    }

    /// Returns all problems with their offsets.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.frames.iter().flat_map(DecodedFrame::problems).collect();
        let rest = self.rest_problem.as_ref();
        problems.extend(rest.map(|problem| format!("at offset {}: {problem}", self.rest.start)));
        problems
    }

    /// Returns the first problem and the number of others, or `None` without problems.
    pub fn verdict(&self) -> Option<String> {
        let problems = self.problems();
        let (first, more) = problems.split_first()?;
        let more = match more.len() {
            0 => String::new(),
            number => format!(", and {number} more"),
        };
        Some(format!("{}: {first}{more}{}", self.input.name, self.input.hint()))
    }
}

/// Detects the framing, preferring one in which all messages match the schema.
fn detected(bytes: &[u8], message_type: Option<MessageType>, limits: &Limits) -> Detection {
    let shallow = limits.depth_max(1);
    let fits = |span: Span| {
        let message = dissect(bytes, span, message_type, &shallow);
        message.records.iter().all(|record| record.known().is_some())
    };
    if message_type.is_some() {
        let detection = detect(bytes, limits, fits);
        if detection.fits {
            return detection;
        }
    }
    detect(bytes, limits, |_| true)
}
