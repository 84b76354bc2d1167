//! A call and what went to and fro, whoever has kept it: its messages between what is said before them and behind them.

use std::io::Write;

use thalweg_inspect::Input;
use thalweg_protobuf::MessageType;

use crate::failure::Failure;
use crate::terminal::written;

/// A call to be shown.
pub(super) struct Shown<'s> {
    /// Method and metadata.
    pub(super) heading: String,
    pub(super) parts: Vec<Part<'s>>,
    /// Trailers, status and times.
    pub(super) ending: String,
    /// The same for programs. Parts are added to it.
    pub(super) document: serde_json::Value,
}

/// The messages of one direction, each with gRPC's prefix before it.
pub(super) struct Part<'s> {
    /// `requests` or `responses`.
    way: &'static str,
    pub(super) input: Input,
    pub(super) message_type: Option<MessageType<'s>>,
}

impl<'s> Part<'s> {
    pub(super) fn new(
        way: &'static str,
        whose: &str,
        bytes: Vec<u8>,
        message_type: Option<MessageType<'s>>,
    ) -> Self {
        Self { way, input: Input { name: format!("{whose}, {way}"), bytes }, message_type }
    }
}

/// Writes it, its messages by `take_apart`, which gives what is wrong with them.
pub(super) fn show(
    mut shown: Shown<'_>,
    output: &mut dyn Write,
    is_json: bool,
    mut take_apart: impl FnMut(&Part<'_>, &mut dyn Write) -> Result<Option<String>, Failure>,
) -> Result<Option<String>, Failure> {
    let mut problem = None;
    let mut texts = Vec::new();
    for part in shown.parts.iter().filter(|part| !part.input.bytes.is_empty()) {
        let mut text = Vec::new();
        problem = problem.or(take_apart(part, &mut text)?);
        texts.push((part.way, text));
    }
    if is_json {
        for (way, text) in texts {
            shown.document[way] = serde_json::from_slice(&text).unwrap_or_default();
        }
        written(writeln!(output, "{:#}", shown.document))?;
        return Ok(problem);
    }
    written(output.write_all(shown.heading.as_bytes()))?;
    for (_, text) in texts {
        written(output.write_all(&text).and_then(|()| output.write_all(b"\n")))?;
    }
    written(output.write_all(shown.ending.as_bytes()))?;
    Ok(problem)
}
