//! Responses on stdout.

use thalweg_dynamic::texts::{MessageFormat, SEPARATOR};
use thalweg_dynamic::{Catalogue, ResolvedMethod, ResponsePrinter};
use thalweg_protobuf::json::PrintOptions;

use super::arguments::CallArgs;
use crate::failure::Failure;
use crate::terminal::{self, Syntax};

/// Prints the responses of a method.
pub(super) struct Printer {
    responses: ResponsePrinter,
    format: MessageFormat,
    is_pretty: bool,
    /// Whether binary messages are prefixed by their length.
    is_delimited: bool,
    /// Whether a message has been printed.
    is_behind_another: bool,
}

impl Printer {
    pub(super) fn new(called: &ResolvedMethod, args: &CallArgs) -> Self {
        let is_stream = called.is_server_streaming;
        let is_pretty = args.pretty || !(is_stream || args.compact);
        let options = PrintOptions::default()
            .defaults(args.emit_defaults)
            .schema_names(args.schema_names)
            .allow_partial(true)
            .pretty(is_pretty);
        Self {
            responses: ResponsePrinter::new(called, args.output, options),
            format: args.output,
            is_pretty,
            is_delimited: is_stream,
            is_behind_another: false,
        }
    }

    /// Prints a message and flushes.
    pub(super) async fn print(&mut self, wire: &[u8], catalogue: &mut Catalogue) -> Result<(), Failure> {
        let is_behind_another = std::mem::replace(&mut self.is_behind_another, true);
        let printed = self.responses.print(wire, catalogue).await.map_err(Failure::failed)?;
        let text = || String::from_utf8_lossy(&printed);
        let bytes = match self.format {
            MessageFormat::Binary if self.is_delimited => [&varint(printed.len())[..], &printed].concat(),
            MessageFormat::Binary => printed,
            MessageFormat::Json => (Syntax::Json.escaped(&text()) + "\n").into_owned().into_bytes(),
            MessageFormat::Text => {
                let separator = if is_behind_another { &[SEPARATOR][..] } else { &[] };
                let line_end = if self.is_pretty { "" } else { "\n" };
                [separator, Syntax::Text.escaped(&text()).as_bytes(), line_end.as_bytes()].concat()
            }
        };
        // If the reader of stdout is gone, the stream is cancelled.
        terminal::print_or_end(&bytes)
    }
}

/// Encodes a Protobuf varint.
fn varint(number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    thalweg::prost::encoding::encode_varint(number as u64, &mut bytes);
    bytes
}

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
