//! Wire bytes as JSON.

use super::sink::JsonSink;
use crate::schema::MessageType;
use crate::transcode::{self, PrintError, PrintOptions, Printer};

/// Appends the JSON of a message that is given as wire bytes. The fields come in the order that they have on the wire.
///
/// # Errors
///
/// See [`PrintError`]. `json` is then what it was.
pub fn print(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    json: &mut Vec<u8>,
) -> Result<(), PrintError> {
    transcode::print(message_type, wire, options, json, |merge, wire, json| {
        let pool = message_type.schema().pool();
        let index = message_type.index();
        if options.pretty {
            Printer::new(pool, options, JsonSink::<true>::new(json), merge).print(index, wire)
        } else {
            Printer::new(pool, options, JsonSink::<false>::new(json), merge).print(index, wire)
        }
    })
}

/// As [`print`], of the fields that are there alone: what must be there may be missing, and no defaults are added.
pub(super) fn print_set(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    json: &mut Vec<u8>,
) -> Result<(), PrintError> {
    transcode::print(message_type, wire, options, json, |merge, wire, json| {
        let pool = message_type.schema().pool();
        let index = message_type.index();
        if options.pretty {
            Printer::new(pool, options, JsonSink::<true>::new(json), merge).print_set(index, wire)
        } else {
            Printer::new(pool, options, JsonSink::<false>::new(json), merge).print_set(index, wire)
        }
    })
}
