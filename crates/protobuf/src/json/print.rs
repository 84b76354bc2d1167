//! Converts wire bytes to JSON.

use super::sink::JsonSink;
use crate::schema::MessageType;
use crate::transcode::{self, PrintError, PrintOptions, Printer};

/// Appends the JSON of a message that is given as wire bytes. Fields keep their wire order.
///
/// # Errors
///
/// See [`PrintError`]. On error `json` is unchanged.
pub fn print(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    json: &mut Vec<u8>,
) -> Result<(), PrintError> {
    transcode::print(message_type, wire, options, json, |normalize, wire, json| {
        let pool = message_type.schema().pool();
        let index = message_type.index();
        if options.pretty {
            Printer::new(pool, options, JsonSink::<true>::new(json), normalize).print(index, wire)
        } else {
            Printer::new(pool, options, JsonSink::<false>::new(json), normalize).print(index, wire)
        }
    })
}

/// Prints like [`print`], but only the fields that are present: required fields may be missing, and no defaults are
/// added.
pub(super) fn print_present_fields(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    json: &mut Vec<u8>,
) -> Result<(), PrintError> {
    transcode::print(message_type, wire, options, json, |normalize, wire, json| {
        let pool = message_type.schema().pool();
        let index = message_type.index();
        if options.pretty {
            Printer::new(pool, options, JsonSink::<true>::new(json), normalize)
                .print_present_fields(index, wire)
        } else {
            Printer::new(pool, options, JsonSink::<false>::new(json), normalize)
                .print_present_fields(index, wire)
        }
    })
}
