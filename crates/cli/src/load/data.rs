//! The requests of a call: from JSON, rows of CSV or bytes, as they are or by templates.

use std::fs;
use std::io::{self, Read};

use clap::ValueEnum;
use thalweg_load::{Order, Requests};

use super::made::{PLACE, TextTemplates};
use super::rows;
use crate::called::Called;
use crate::failure::Failure;
use crate::message_format::{MessageFormat, Texts};

/// What requests are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Input {
    /// ProtoJSON, one document behind the other
    Json,
    /// Rows with the names of fields in the first: one request each. A file whose name ends in .csv is read so by
    /// itself
    Csv,
    /// Protobuf's text format, with the byte 0x1E between two messages
    Text,
    /// As on the wire
    Binary,
}

/// What is sent, and how.
pub(super) struct Data<'a> {
    /// A text, `@FILE`, or `@-` for stdin; none: one empty message.
    pub(super) text: Option<&'a str>,
    /// None: as the file's name says.
    pub(super) input: Option<Input>,
    pub(super) order: Order,
    /// Messages of a stream.
    pub(super) messages: Option<u64>,
    /// A stream ends by time, and has messages until then.
    pub(super) is_endless: bool,
    pub(super) has_templates: bool,
    pub(super) seed: u64,
    /// What steps before may have kept.
    pub(super) variables: &'a [String],
}

impl Data<'_> {
    /// The requests of this method.
    pub(super) fn requests(&self, called: &Called) -> Result<Requests, Failure> {
        let endless = self.is_endless.then_some(u64::MAX);
        let per_stream = self.messages.or(endless);
        let Some(text) = self.text else {
            return Ok(Requests::new(Vec::new(), self.order, per_stream.or(Some(1))));
        };
        let data = read(text)?;
        let named = if is_csv(text) { Input::Csv } else { Input::Json };
        let input = self.input.unwrap_or(named);
        let format = if input == Input::Text { MessageFormat::Text } else { MessageFormat::Json };
        let texts = match (input, Texts::of(format)) {
            (Input::Csv, _) => rows::documents(&data, called)?,
            (Input::Json | Input::Text, Some(texts)) => all(texts, &data),
            _ => return Ok(Requests::new(vec![data.into()], self.order, per_stream)),
        };
        let is_made = |text: &Vec<u8>| String::from_utf8_lossy(text).contains(PLACE);
        if self.has_templates && texts.iter().any(is_made) {
            let make = TextTemplates::read(called, format, &texts, self.order, self.variables)?;
            return Ok(Requests::made(make, self.seed, per_stream.unwrap_or(texts.len() as u64)));
        }
        let messages = encoded(format, &texts, called)?;
        Ok(Requests::new(messages.into_iter().map(Into::into).collect(), self.order, per_stream))
    }
}

fn is_csv(text: &str) -> bool {
    text.starts_with('@') && text.to_ascii_lowercase().ends_with(".csv")
}

fn read(data: &str) -> Result<Vec<u8>, Failure> {
    let Some(path) = data.strip_prefix('@') else { return Ok(data.as_bytes().to_vec()) };
    if matches!(path, "" | "-") {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|error| Failure::failed(format!("cannot read stdin: {error}")));
    }
    fs::read(path).map_err(|error| Failure::failed(format!("cannot read {path}: {error}")))
}

fn all(mut texts: Texts, data: &[u8]) -> Vec<Vec<u8>> {
    texts.push(data);
    let mut all: Vec<Vec<u8>> = std::iter::from_fn(|| texts.next()).collect();
    all.extend(texts.rest());
    all
}

fn encoded(format: MessageFormat, texts: &[Vec<u8>], called: &Called) -> Result<Vec<Vec<u8>>, Failure> {
    let wire = |(number, text): (usize, &Vec<u8>)| {
        called.encoded(format, text, false).map_err(|why| {
            Failure::bad_arguments(format!("request {number} is no {}: {why}", called.request_type))
        })
    };
    (1..).zip(texts).map(wire).collect()
}
