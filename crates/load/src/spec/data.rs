//! Requests of a call from JSON, CSV rows or bytes, with or without templates.

use std::fs;
use std::io::{self, Read};
use std::str::FromStr;
use std::sync::Arc;

use thalweg_dynamic::ResolvedMethod;
use thalweg_dynamic::delimited::{self, DelimitedError};
use thalweg_dynamic::texts::{MessageFormat, Texts, elements};

use super::error::SpecError;
use super::rows;
use super::templates::{PLACE, TextTemplates};
use crate::requests::{Order, Requests};
use crate::template::TemplateNames;

/// Format of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// ProtoJSON documents, one after the other
    Json,
    /// CSV with field names in the first row, one request per row; default for *.csv files
    Csv,
    /// Protobuf text format, messages separated by byte 0x1E
    Text,
    /// Wire format: one message, or a delimited stream for methods that take a stream
    Binary,
    /// Wire format, each message preceded by its length as a varint
    Delimited,
}

impl FromStr for Input {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "json" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            "text" => Ok(Self::Text),
            "binary" => Ok(Self::Binary),
            "delimited" => Ok(Self::Delimited),
            _ => Err(format!("unknown format `{name}`; use json, csv, text, binary or delimited")),
        }
    }
}

/// Request data and its format.
pub(super) struct Data<'a> {
    /// Texts, `@FILE`, or `@-` for stdin, concatenated. Empty means one empty message.
    pub(super) texts: &'a [String],
    /// `None` chooses by the file's name.
    pub(super) input: Option<Input>,
    pub(super) order: Order,
    /// Messages of a stream.
    pub(super) messages: Option<u64>,
    /// Whether a stream ends by time, and has messages until then.
    pub(super) is_endless: bool,
    pub(super) has_templates: bool,
    pub(super) seed: u64,
    /// Names that templates may use besides those of each call.
    pub(super) names: TemplateNames<'a>,
}

impl Data<'_> {
    /// Returns the messages per stream, if specified. Methods that take one message use the next one in each call.
    fn per_stream(&self, called: &ResolvedMethod) -> Option<u64> {
        let endless = self.is_endless.then_some(u64::MAX);
        if called.is_client_streaming { self.messages.or(endless) } else { Some(1) }
    }

    pub(super) fn requests(&self, called: &ResolvedMethod) -> Result<Requests, SpecError> {
        let per_stream = self.per_stream(called);
        if self.texts.is_empty() {
            called.empty().map_err(|why| {
                SpecError::invalid(format!("an empty request is not a valid {}: {why}", called.request_type))
            })?;
            return Ok(Requests::new(Vec::new(), self.order, per_stream.or(Some(1))));
        }
        let ready = |wires: Vec<Vec<u8>>| {
            Requests::new(wires.into_iter().map(Into::into).collect(), self.order, per_stream)
        };
        if matches!(self.input, Some(Input::Binary | Input::Delimited)) {
            let is_single_message = self.input == Some(Input::Binary) && !called.is_client_streaming;
            let wires = |text: &str, data: &[u8]| {
                if is_single_message { Ok(vec![data.to_vec()]) } else { split_messages(text, data) }
            };
            return Ok(ready(self.each(wires)?));
        }
        let is_text = self.input == Some(Input::Text);
        let format = if is_text { MessageFormat::Text } else { MessageFormat::Json };
        let texts = self.each(|text, data| match Texts::of(format) {
            Some(texts) if !self.is_csv(text) => {
                let all = all(texts, data);
                // An array is several messages, as in ghz, unless it is the JSON of one.
                let splits = format == MessageFormat::Json && !called.takes_arrays();
                Ok(if splits { all.into_iter().flat_map(elements).collect() } else { all })
            }
            _ => rows::documents(data, called),
        })?;
        if texts.is_empty() {
            return Err(SpecError::invalid("-d has no message; leave it out to send an empty one"));
        }
        let is_made = |text: &Vec<u8>| String::from_utf8_lossy(text).contains(PLACE);
        if self.has_templates && texts.iter().any(is_made) {
            let templates = TextTemplates::read(called, format, &texts, self.names)?;
            return match templates.constant() {
                Some(texts) => Ok(ready(encoded(format, &texts, called)?)),
                None => Ok(Requests::made(Arc::new(templates), self.seed, self.order, per_stream)),
            };
        }
        Ok(ready(encoded(format, &texts, called)?))
    }

    /// Applies `make` to each text, or the content of the file it names.
    fn each(
        &self,
        make: impl Fn(&str, &[u8]) -> Result<Vec<Vec<u8>>, SpecError>,
    ) -> Result<Vec<Vec<u8>>, SpecError> {
        let mut all = Vec::new();
        for text in self.texts {
            all.extend(make(text, &read(text)?)?);
        }
        Ok(all)
    }

    fn is_csv(&self, text: &str) -> bool {
        let is_named = text.starts_with('@') && text.to_ascii_lowercase().ends_with(".csv");
        self.input.map_or(is_named, |input| input == Input::Csv)
    }
}

/// Splits length-prefixed messages.
fn split_messages(text: &str, mut data: &[u8]) -> Result<Vec<Vec<u8>>, SpecError> {
    let name = text.strip_prefix('@').unwrap_or("the data");
    let mut wires = Vec::new();
    loop {
        match delimited::next(&mut data) {
            Ok(Some(wire)) => wires.push(wire),
            Ok(None) if wires.is_empty() => {
                return Err(SpecError::invalid(format!("{name} has no message")));
            }
            Ok(None) => return Ok(wires),
            Err(DelimitedError::Malformed(what)) => {
                return Err(SpecError::invalid(format!(
                    "{name}: message {} {what}; expected each message after its length as a varint",
                    wires.len() + 1
                )));
            }
            Err(DelimitedError::Unreadable(error)) => {
                return Err(SpecError::failed(format!("{name}: {error}")));
            }
        }
    }
}

fn read(data: &str) -> Result<Vec<u8>, SpecError> {
    let Some(path) = data.strip_prefix('@') else { return Ok(data.as_bytes().to_vec()) };
    if matches!(path, "" | "-") {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        return read
            .map(|_| bytes)
            .map_err(|error| SpecError::failed(format!("failed to read stdin: {error}")));
    }
    fs::read(path).map_err(|error| SpecError::failed(format!("failed to read {path}: {error}")))
}

fn all(mut texts: Texts, data: &[u8]) -> Vec<Vec<u8>> {
    texts.push(data);
    let mut all: Vec<Vec<u8>> = texts.by_ref().collect();
    all.extend(texts.rest());
    all
}

fn encoded(
    format: MessageFormat,
    texts: &[Vec<u8>],
    called: &ResolvedMethod,
) -> Result<Vec<Vec<u8>>, SpecError> {
    let wire = |(number, text): (usize, &Vec<u8>)| {
        called.encoded(format, text, false).map_err(|why| {
            SpecError::invalid(format!("request {number} is not a valid {}: {why}", called.request_type))
        })
    };
    (1..).zip(texts).map(wire).collect()
}
