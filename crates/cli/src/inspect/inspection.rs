//! What was found in an input.

use thalweg_protobuf::MessageType;
use thalweg_protobuf::dissect::framing::{Detection, Framing};
use thalweg_protobuf::dissect::{Message, Span};

use super::compressed::Opened;
use super::input::Input;

/// An input taken apart.
pub(super) struct Inspection<'a> {
    pub(super) input: &'a Input,
    pub(super) message_type: Option<MessageType<'a>>,
    pub(super) framing: Framing,
    /// None if the framing was said.
    pub(super) detection: Option<Detection>,
    pub(super) frames: Vec<Opened<'a>>,
    /// What is no frame, at the end, and why.
    pub(super) rest: Span,
    pub(super) rest_problem: Option<String>,
}

impl Inspection<'_> {
    /// All messages, each with the bytes in which it lies.
    pub(super) fn messages(&self) -> impl Iterator<Item = (&Message<'_>, &[u8])> {
        self.frames.iter().filter_map(|opened| opened.message(&self.input.bytes))
    }

    /// All that is wrong, with offsets.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.frames.iter().flat_map(Opened::problems).collect();
        let rest = self.rest_problem.as_ref();
        problems.extend(rest.map(|problem| format!("at offset {}: {problem}", self.rest.start)));
        problems
    }

    /// The first thing that is wrong, and how many more there are.
    pub(super) fn verdict(&self) -> Option<String> {
        let problems = self.problems();
        let (first, more) = problems.split_first()?;
        let more = match more.len() {
            0 => String::new(),
            number => format!(", and {number} more"),
        };
        Some(format!("{}: {first}{more}{}", self.input.name, self.input.hint()))
    }
}
