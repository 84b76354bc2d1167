//! Messages on stdout.

use thalweg_dynamic::Catalogue;
use thalweg_dynamic::texts::MessageFormat;
use thalweg_dynamic::texts::SEPARATOR;
use thalweg_protobuf::json::{self, PrintError, PrintOptions};
use thalweg_protobuf::{Schema, text_format};

use super::arguments::CallArgs;
use crate::failure::Failure;
use crate::terminal::{self, Syntax};

/// More types than these are not looked for to print one message.
const FETCHES_MAX: usize = 32;

/// Prints the messages of one type.
pub(super) struct Printer {
    schema: Schema,
    /// Its full name.
    message: String,
    options: PrintOptions,
    format: MessageFormat,
    /// Each with its length before it, if they are binary.
    is_delimited: bool,
    /// Whether a message has been printed.
    is_behind_another: bool,
}

impl Printer {
    pub(super) fn new(schema: Schema, message: &str, is_stream: bool, args: &CallArgs) -> Self {
        let options = PrintOptions {
            defaults: args.emit_defaults,
            schema_names: args.schema_names,
            allow_partial: true,
            pretty: args.pretty || !(is_stream || args.compact),
            ..PrintOptions::default()
        };
        let message = message.to_owned();
        Self {
            schema,
            message,
            options,
            format: args.output,
            is_delimited: is_stream,
            is_behind_another: false,
        }
    }

    /// Prints a message, and has it be seen at once. Types of what is in its `Any`s come from the catalogue.
    pub(super) async fn print(&mut self, wire: &[u8], catalogue: &mut Catalogue) -> Result<(), Failure> {
        let is_behind_another = std::mem::replace(&mut self.is_behind_another, true);
        let text = match self.format {
            MessageFormat::Binary if self.is_delimited => [&varint(wire.len())[..], wire].concat(),
            MessageFormat::Binary => wire.to_vec(),
            MessageFormat::Json => {
                let mut text = self.json(wire, catalogue).await?;
                text.push(b'\n');
                Syntax::Json.escaped(&String::from_utf8_lossy(&text)).as_bytes().to_vec()
            }
            MessageFormat::Text => {
                let text = self.text(wire, catalogue).await?;
                let separator = if is_behind_another { &[SEPARATOR][..] } else { &[] };
                let line_end = if self.options.pretty { "" } else { "\n" };
                [separator, Syntax::Text.escaped(&text).as_bytes(), line_end.as_bytes()].concat()
            }
        };
        // A stream that nobody reads any more is cancelled.
        terminal::print_or_end(&text)
    }

    async fn json(&mut self, wire: &[u8], catalogue: &mut Catalogue) -> Result<Vec<u8>, Failure> {
        for _ in 0..FETCHES_MAX {
            let Some(message_type) = self.schema.message(&self.message) else { break };
            let mut text = Vec::new();
            match json::print(message_type, wire, &self.options, &mut text) {
                Ok(()) => return Ok(text),
                Err(PrintError::UnknownType { type_url }) => {
                    let name = type_url.rsplit('/').next().unwrap_or_default();
                    match catalogue.schema_of(name).await {
                        Ok(Some(schema)) if schema.message(name).is_some() => self.schema = schema,
                        _ => {
                            return Err(Failure::failed(format!(
                                "received a {} with an Any of unknown type `{type_url}`; \
                                 -O binary prints it raw",
                                self.message
                            )));
                        }
                    }
                }
                Err(error) => {
                    return Err(Failure::failed(format!("received an invalid {}: {error}", self.message)));
                }
            }
        }
        Err(Failure::failed(format!(
            "received a {} with more than {FETCHES_MAX} unknown types",
            self.message
        )))
    }

    /// What is in an `Any` of a type that nobody declares stays bytes.
    async fn text(&mut self, wire: &[u8], catalogue: &mut Catalogue) -> Result<String, Failure> {
        for _ in 0..FETCHES_MAX {
            let Some(message_type) = self.schema.message(&self.message) else { break };
            let mut text = String::new();
            let unknown_types = text_format::print(message_type, wire, &self.options, &mut text)
                .map_err(|error| Failure::failed(format!("received an invalid {}: {error}", self.message)))?;
            let mut found = None;
            for type_url in unknown_types {
                let name = type_url.rsplit('/').next().unwrap_or_default();
                let schema = catalogue.schema_of(name).await.ok().flatten();
                // One that has lost what is printed would lead nowhere.
                let has = |schema: &Schema| {
                    schema.message(name).is_some() && schema.message(&self.message).is_some()
                };
                found = found.or(schema.filter(has));
            }
            match found {
                Some(schema) => self.schema = schema,
                None => return Ok(text),
            }
        }
        Err(Failure::failed(format!(
            "received a {} with more than {FETCHES_MAX} unknown types",
            self.message
        )))
    }
}

/// A number as Protobuf has it.
fn varint(number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    thalweg::prost::encoding::encode_varint(number as u64, &mut bytes);
    bytes
}

/// Prints lines.
pub(super) fn lines(lines: impl IntoIterator<Item = String>) -> Result<(), Failure> {
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    terminal::print(Syntax::Text, &text)
}

#[cfg(test)]
mod tests {
    use super::varint;

    #[test]
    fn lengths_are_varints() {
        for (number, bytes) in [(0, &[0][..]), (127, &[127]), (128, &[128, 1]), (300, &[172, 2])] {
            assert_eq!(varint(number), bytes);
        }
    }
}
