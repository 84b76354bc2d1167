//! Direct conversion of messages between wire bytes and another format. A [`Printer`] reads wire bytes and passes
//! values to a [`Sink`]. A [`Builder`] reads values from a [`Source`] and appends wire bytes. Both use the decoder's
//! tables. ProtoJSON's rules for well-known types and names are implemented here and also apply to MessagePack.

mod build;
mod error;
mod keys;
mod options;
pub(crate) mod parse_error;
mod print;
mod sink;
mod source;
pub(crate) mod unquoted;

use build::Builder;
pub use error::PrintError;
pub use options::{ParseOptions, PrintOptions};
pub use parse_error::{LocatedError, ParseError};
pub(crate) use print::Printer;
use print::{Normalize, PrintInterrupt};
pub(crate) use sink::{Mark, NotText, Sink};
pub(crate) use source::{Source, ValueKind};

use crate::message::{Decoder, Limits};
use crate::schema::{Field, MessageType, Schema};

/// Appends the message to `out` with `print`. If the wire bytes are not in order, normalises them first.
pub(crate) fn print(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    out: &mut Vec<u8>,
    print: impl Fn(Normalize<'_>, &[u8], &mut Vec<u8>) -> Result<(), PrintInterrupt>,
) -> Result<(), PrintError> {
    let start = out.len();
    let schema = message_type.schema();
    let normalize = |index: u32, wire: &[u8]| normalized(schema, index, wire, options.depth_max);
    let printed = match print(&normalize, wire, out) {
        Err(PrintInterrupt::Unordered | PrintInterrupt::Incomplete(_)) => {
            out.truncate(start);
            normalize(message_type.index(), wire)
                .map_err(PrintInterrupt::from)
                .and_then(|wire| print(&normalize, &wire, out))
        }
        printed => printed,
    };
    printed.map_err(|stop| {
        out.truncate(start);
        stop.into_error()
    })
}

/// Appends the wire bytes of the message in `source`. Returns the source, positioned after it.
pub(crate) fn build<'t, S: Source<'t>>(
    message_type: MessageType<'_>,
    source: S,
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<S, LocatedError> {
    Builder::new(message_type.schema().pool(), options, source, wire).build(message_type.index())
}

/// Builds like [`build`], but the value of one field.
pub(crate) fn build_field<'t, S: Source<'t>>(
    field: Field<'_>,
    source: S,
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<S, LocatedError> {
    Builder::new(field.schema().pool(), options, source, wire).build_field(field)
}

/// Builds like [`build`], but one value of a field: an element if the field is repeated.
pub(crate) fn build_value<'t, S: Source<'t>>(
    field: Field<'_>,
    source: S,
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<S, LocatedError> {
    Builder::new(field.schema().pool(), options, source, wire).build_value(field)
}

/// Returns the message in encoding order, by decoding, which merges, and encoding it.
fn normalized(schema: &Schema, index: u32, wire: &[u8], depth_max: usize) -> Result<Vec<u8>, PrintError> {
    let limits = Limits { depth_max, ..Limits::default() };
    let mut decoder = Decoder::new(limits);
    Ok(decoder.decode(schema.message_at(index), wire)?.encode_to_vec())
}
