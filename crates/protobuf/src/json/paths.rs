//! Which fields a JSON text has.

use super::read::{Kind, Reader};
use crate::printable::excerpt;
use crate::schema::{Field, MessageType};
use crate::transcode::fault::Fault;
use crate::transcode::{ParseError, ParseOptions, Source as _};

/// The fields that are present in the JSON of a message, as paths of a `google.protobuf.FieldMask`: names of the
/// schema with dots between, in their order. A path ends at what has no fields of its own: numbers, texts, lists, maps,
/// messages that have another form in JSON, messages without members, and null.
///
/// ```
/// # use thalweg_protobuf::{Schema, json, sources};
/// # let source = "syntax = 'proto3'; message Book { string main_title = 1; Book sequel = 2; }";
/// # let set = sources::compile(&["book.proto"], |_| Some(source.to_owned()))?;
/// # let schema = Schema::from_descriptor_set(&set)?;
/// let book = schema.message("Book").expect("it is in the file");
/// let json = br#"{"mainTitle": "a", "sequel": {"mainTitle": null}}"#;
/// let paths = json::field_paths(book, json, &json::ParseOptions::default())?;
/// assert_eq!(paths, ["main_title", "sequel.main_title"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// For a text that is no JSON, and for members that the type does not have unless they are to be ignored; values are
/// not compared with the types of their fields. The paths together, with 40 bytes for each, may take
/// [`ParseOptions::len_max`]: every path repeats the names of all messages around it.
pub fn field_paths(
    message_type: MessageType<'_>,
    json: &[u8],
    options: &ParseOptions,
) -> Result<Vec<String>, ParseError> {
    let walk = || {
        let reader = Reader::new(json)?;
        let mut walk = Walk { reader, options, prefix: String::new(), paths: Vec::new(), len: 0 };
        walk.members(message_type, options.depth_max)?;
        walk.reader.end()?;
        Ok(walk.paths)
    };
    walk().map_err(|fault: Fault| fault.locate(json))
}

struct Walk<'t, 'o> {
    reader: Reader<'t>,
    options: &'o ParseOptions,
    /// The path of the message that is walked over, with a dot behind.
    prefix: String,
    paths: Vec<String>,
    /// Bytes that the paths take.
    len: usize,
}

/// Bytes that a path takes beside its text: a `String`, and what an allocator adds to its buffer.
const PATH_OVERHEAD: usize = 40;

impl Walk<'_, '_> {
    /// Whether there were any. `depth` more values may lie in one another.
    fn members(&mut self, message_type: MessageType<'_>, depth: usize) -> Result<bool, Fault> {
        let mut open = self.reader.begin_map()?;
        let mut is_any = false;
        while self.reader.next_key(&mut open)? {
            let at = self.reader.offset();
            let key = self.reader.key()?;
            match message_type.field_by_json_name(&key) {
                Some(field) => {
                    self.field(field, depth).map_err(|fault| fault.in_field(field.json_name()))?;
                    is_any = true;
                }
                None if self.options.ignore_unknown || key.starts_with('[') => {
                    self.reader.skip_value(depth)?;
                }
                None => {
                    let problem = format!("{} has no field `{}`", message_type.full_name(), excerpt(&key));
                    return Err(Fault::new(at, problem));
                }
            }
        }
        Ok(is_any)
    }

    fn field(&mut self, field: Field<'_>, depth: usize) -> Result<(), Fault> {
        let nested =
            field.message_type().filter(|nested| !field.is_repeated() && nested.well_known().is_none());
        if let Some(nested) = nested
            && self.reader.peek()? == Kind::Object
        {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(Fault::new(self.reader.offset(), "messages lie in one another too deep"));
            };
            let outer_len = self.prefix.len();
            self.prefix.push_str(field.name());
            self.prefix.push('.');
            let is_any = self.members(nested, depth)?;
            self.prefix.truncate(outer_len);
            if is_any {
                return Ok(());
            }
        } else {
            // A message in a list is two values deep.
            self.reader.skip_value(2 * depth + 1)?;
        }
        self.len += self.prefix.len() + field.name().len() + PATH_OVERHEAD;
        if self.len > self.options.len_max {
            return Err(Fault::too_long(self.reader.offset(), self.options.len_max));
        }
        self.paths.push([&self.prefix, field.name()].concat());
        Ok(())
    }
}
