//! Formats responses.

use thalweg_protobuf::Schema;
use thalweg_protobuf::json::{self, PrintError, PrintOptions};
use thalweg_protobuf_text::text_format;

use crate::catalogue::Catalogue;
use crate::resolved_method::ResolvedMethod;
use crate::texts::MessageFormat;

/// Maximum number of types fetched to print one message.
const FETCHES_MAX: usize = 32;

/// Prints responses of a method.
#[derive(Debug)]
pub struct ResponsePrinter {
    schema: Schema,
    /// Full name of the response type.
    message: String,
    format: MessageFormat,
    options: PrintOptions,
}

impl ResponsePrinter {
    /// Creates a printer of this format.
    pub fn new(method: &ResolvedMethod, format: MessageFormat, options: PrintOptions) -> Self {
        Self { schema: method.schema.clone(), message: method.response_type.clone(), format, options }
    }

    /// Formats a response as text, or returns its bytes if the format is binary. Types of `Any` come from the
    /// catalogue. In text format an `Any` of unknown type keeps its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error for an invalid response, or for JSON with an `Any` of unknown type.
    pub async fn print(&mut self, wire: &[u8], catalogue: &mut Catalogue) -> Result<Vec<u8>, String> {
        let message = self.message.clone();
        for _ in 0..FETCHES_MAX {
            let Some(message_type) = self.schema.message(&message) else { break };
            let (text, unknown) = match self.format {
                MessageFormat::Binary => return Ok(wire.to_vec()),
                MessageFormat::Json => {
                    let mut text = Vec::new();
                    match json::print(message_type, wire, &self.options, &mut text) {
                        Ok(()) => return Ok(text),
                        Err(PrintError::UnknownType { type_url }) => (text, vec![type_url]),
                        Err(error) => return Err(format!("received an invalid {message}: {error}")),
                    }
                }
                MessageFormat::Text => {
                    let mut text = String::new();
                    let printed = text_format::print(message_type, wire, &self.options, &mut text);
                    let unknown =
                        printed.map_err(|error| format!("received an invalid {message}: {error}"))?;
                    (text.into_bytes(), unknown)
                }
            };
            let mut found = None;
            for type_url in &unknown {
                let name = type_url.rsplit('/').next().unwrap_or_default();
                let schema = catalogue.schema_of(name).await.ok().flatten();
                // Ignores a schema without the printed type, which would not help.
                let has =
                    |schema: &Schema| schema.message(name).is_some() && schema.message(&message).is_some();
                found = found.or(schema.filter(has));
            }
            match (found, unknown.first()) {
                (Some(schema), _) => self.schema = schema,
                (None, Some(type_url)) if self.format == MessageFormat::Json => {
                    return Err(format!(
                        "received a {message} with an Any of unknown type `{type_url}`; -O binary prints it raw"
                    ));
                }
                (None, _) => return Ok(text),
            }
        }
        Err(format!("received a {message} with more than {FETCHES_MAX} unknown types"))
    }
}
