//! Prints messages as text.

use std::fmt::Write;

use thalweg_protobuf::json::{PrintError, PrintOptions};
use thalweg_protobuf::wire::{Reader, WireError, WireErrorKind, WireType};
use thalweg_protobuf::{Field, Kind, Limits, Message, MessageRef, MessageType, Value, WellKnown};

use super::group::is_group;
use super::literal;

/// Maximum nesting depth for printing unknown bytes as messages.
const UNKNOWN_DEPTH_MAX: usize = 10;

/// Appends the text. Returns the type URLs of `Any`s that the schema does not have.
pub(super) fn print(
    message_type: MessageType<'_>,
    wire: &[u8],
    options: &PrintOptions,
    text: &mut String,
) -> Result<Vec<String>, PrintError> {
    let message = decoded(message_type, wire, options.depth_max)?;
    if !options.allow_partial
        && let Some(field) = message.as_ref().missing_required()
    {
        return Err(PrintError::Required { field });
    }
    let start = text.len();
    let mut printer = Printer { options, text, start, indent: 0, unknown_types: Vec::new() };
    printer.message(message.as_ref(), options.depth_max)?;
    Ok(printer.unknown_types)
}

fn decoded(of: MessageType<'_>, wire: &[u8], depth_max: usize) -> Result<Message, PrintError> {
    let mut limits = Limits::default();
    limits.depth_max = depth_max;
    Ok(Message::decode_within(of, wire.to_vec(), &limits)?)
}

struct Printer<'o> {
    options: &'o PrintOptions,
    text: &'o mut String,
    /// Offset of the message in the text.
    start: usize,
    indent: usize,
    unknown_types: Vec<String>,
}

impl Printer<'_> {
    fn message(&mut self, message: MessageRef<'_>, depth: usize) -> Result<(), PrintError> {
        if message.message_type().well_known() == Some(WellKnown::Any) && self.any(message, depth)? {
            return Ok(());
        }
        if self.options.defaults {
            let mut fields: Vec<Field<'_>> =
                message.message_type().fields().chain(message.message_type().extensions()).collect();
            fields.sort_by_key(|field| field.number());
            for field in fields {
                if message.has(field) {
                    self.field(field, message.get(field), depth)?;
                } else if !field.has_presence() {
                    self.unset(field, message.get(field), depth)?;
                }
            }
        } else {
            for (field, value) in message.fields() {
                self.field(field, Some(value), depth)?;
            }
        }
        let unknown = message.unknown_fields();
        self.unknown(&mut Reader::new(&unknown), None, UNKNOWN_DEPTH_MAX)
            .map_err(|error| PrintError::Decode(error.into()))
    }

    /// Prints an `Any` as its content. Returns false and prints nothing if that is not possible.
    fn any(&mut self, message: MessageRef<'_>, depth: usize) -> Result<bool, PrintError> {
        let url = message.get(1).and_then(Value::as_str).unwrap_or_default();
        let value = message.get(2).and_then(Value::as_bytes).unwrap_or_default();
        if url.is_empty() || message.has_unknown_fields() {
            return Ok(false);
        }
        let schema = message.message_type().schema();
        let Some(content_type) = schema.message_by_url(url) else {
            if !self.unknown_types.iter().any(|known| known == url) {
                self.unknown_types.push(url.to_owned());
            }
            return Ok(false);
        };
        let Some(depth) = depth.checked_sub(1) else { return Ok(false) };
        // If the content is not a valid message, print its bytes instead.
        let Ok(content_type) = decoded(content_type, value, depth) else { return Ok(false) };
        self.nested(&format!("[{url}]"), |printer| printer.message(content_type.as_ref(), depth))?;
        Ok(true)
    }

    fn field(&mut self, field: Field<'_>, value: Option<Value<'_>>, depth: usize) -> Result<(), PrintError> {
        let name = name(field);
        match value {
            None => Ok(()),
            Some(Value::List(list)) => list.iter().try_for_each(|value| self.one(&name, field, value, depth)),
            Some(Value::Map(map)) => {
                let Some((key_field, value_field)) = field.map_entry() else { return Ok(()) };
                map.iter().try_for_each(|(key, value)| {
                    self.nested(&name, |printer| {
                        printer.one("key", key_field, key, depth)?;
                        printer.one("value", value_field, value, depth.saturating_sub(1))
                    })
                })
            }
            Some(value) => self.one(&name, field, value, depth),
        }
    }

    /// Prints an absent field without presence.
    fn unset(&mut self, field: Field<'_>, value: Option<Value<'_>>, depth: usize) -> Result<(), PrintError> {
        match value {
            Some(Value::List(_) | Value::Map(_)) => {
                self.begin(&name(field));
                self.text.push_str(": []");
                self.end()
            }
            value => self.field(field, value, depth),
        }
    }

    fn one(
        &mut self,
        name: &str,
        field: Field<'_>,
        value: Value<'_>,
        depth: usize,
    ) -> Result<(), PrintError> {
        if let Value::Message(message) = value {
            // Decoding has checked the depth.
            let depth = depth.saturating_sub(1);
            return self.nested(name, |printer| printer.message(message, depth));
        }
        self.begin(name);
        self.text.push_str(": ");
        self.scalar(field, value);
        self.end()
    }

    fn scalar(&mut self, field: Field<'_>, value: Value<'_>) {
        // Writing to a `String` cannot fail.
        let _ = match value {
            Value::Bool(value) => write!(self.text, "{value}"),
            Value::I32(value) => write!(self.text, "{value}"),
            Value::I64(value) => write!(self.text, "{value}"),
            Value::U32(value) => write!(self.text, "{value}"),
            Value::U64(value) => write!(self.text, "{value}"),
            Value::F32(value) if value.is_finite() => {
                self.text.write_str(zmij::Buffer::new().format_finite(value))
            }
            Value::F64(value) if value.is_finite() => {
                self.text.write_str(zmij::Buffer::new().format_finite(value))
            }
            Value::F32(value) => self.text.write_str(not_finite(f64::from(value))),
            Value::F64(value) => self.text.write_str(not_finite(value)),
            Value::String(value) => {
                literal::quote(value.as_bytes(), true, self.text);
                Ok(())
            }
            Value::Bytes(value) => {
                literal::quote(value, field.kind() == Kind::String, self.text);
                Ok(())
            }
            Value::Enum(number) => {
                let declared = field.enum_type().and_then(|declared| declared.value_by_number(number));
                match declared.filter(|_| !self.options.enum_numbers) {
                    Some(value) => self.text.write_str(value.name()),
                    None => write!(self.text, "{number}"),
                }
            }
            // Unreachable: these are not scalars.
            Value::Message(_) | Value::List(_) | Value::Map(_) => Ok(()),
        };
    }

    /// Prints unknown wire records, up to the end of the group `group`.
    fn unknown(
        &mut self,
        reader: &mut Reader<'_>,
        group: Option<u32>,
        depth: usize,
    ) -> Result<(), WireError> {
        while !reader.is_empty() {
            let tag = reader.tag()?;
            let name = tag.number.to_string();
            match tag.wire_type {
                WireType::Varint => self.number(&name, format_args!("{}", reader.varint()?)),
                WireType::Fixed32 => self.number(&name, format_args!("0x{:08x}", reader.fixed32()?)),
                WireType::Fixed64 => self.number(&name, format_args!("0x{:016x}", reader.fixed64()?)),
                WireType::Len => self.unknown_bytes(&name, reader.len_prefixed()?, depth),
                WireType::StartGroup => match depth.checked_sub(1) {
                    Some(depth) => {
                        self.braced(&name, |printer| printer.unknown(reader, Some(tag.number), depth))?;
                    }
                    // Groups deeper than the limit are not printed.
                    None => reader.skip(tag, usize::MAX)?,
                },
                WireType::EndGroup if group == Some(tag.number) => return Ok(()),
                WireType::EndGroup => return Err(reader.error(WireErrorKind::EndGroup)),
            }
        }
        Ok(())
    }

    /// Prints unknown bytes as a message if possible, otherwise as text.
    fn unknown_bytes(&mut self, name: &str, bytes: &[u8], depth: usize) {
        if let Some(depth) = depth.checked_sub(1)
            && !bytes.is_empty()
            && is_message(bytes)
        {
            let (len, indent) = (self.text.len(), self.indent);
            if self.braced(name, |printer| printer.unknown(&mut Reader::new(bytes), None, depth)).is_ok() {
                return;
            }
            self.text.truncate(len);
            self.indent = indent;
        }
        self.begin(name);
        self.text.push_str(": ");
        literal::quote(bytes, false, self.text);
        self.line_end();
    }

    fn number(&mut self, name: &str, value: std::fmt::Arguments<'_>) {
        self.begin(name);
        let _ = write!(self.text, ": {value}");
        self.line_end();
    }

    fn nested(
        &mut self,
        name: &str,
        content: impl FnOnce(&mut Self) -> Result<(), PrintError>,
    ) -> Result<(), PrintError> {
        self.braced(name, content)?;
        self.check_len()
    }

    /// Prints `name { … }`.
    fn braced<E>(&mut self, name: &str, content: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        self.begin(name);
        self.text.push_str(" {");
        self.line_end();
        self.indent += 1;
        content(self)?;
        self.indent -= 1;
        self.begin("}");
        self.line_end();
        Ok(())
    }

    fn begin(&mut self, name: &str) {
        if self.options.pretty {
            self.text.extend(std::iter::repeat_n("  ", self.indent));
        } else if self.text.len() > self.start {
            self.text.push(' ');
        }
        self.text.push_str(name);
    }

    fn end(&mut self) -> Result<(), PrintError> {
        self.line_end();
        self.check_len()
    }

    fn line_end(&mut self) {
        if self.options.pretty {
            self.text.push('\n');
        }
    }

    fn check_len(&self) -> Result<(), PrintError> {
        let max = self.options.len_max;
        if self.text.len() - self.start > max { Err(PrintError::TooLong { max }) } else { Ok(()) }
    }
}

/// Returns the name of a field, an extension or a group.
fn name(field: Field<'_>) -> String {
    match field.message_type() {
        _ if field.is_extension() => format!("[{}]", field.full_name()),
        Some(group) if is_group(field) => group.name().to_owned(),
        _ => field.name().to_owned(),
    }
}

fn not_finite(number: f64) -> &'static str {
    match (number.is_nan(), number < 0.0) {
        (true, _) => "nan",
        (false, true) => "-inf",
        (false, false) => "inf",
    }
}

/// Whether bytes are records from the first to the last.
fn is_message(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let read = reader.tag().and_then(|tag| reader.skip(tag, UNKNOWN_DEPTH_MAX));
        if read.is_err() {
            return false;
        }
    }
    true
}
