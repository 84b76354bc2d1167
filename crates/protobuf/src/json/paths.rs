//! Lists the fields that are present in JSON.

use super::read::{JsonKind, Reader};
use crate::printable::excerpt;
use crate::schema::{Field, MessageType};
use crate::transcode::parse_error::LocatedError;
use crate::transcode::{ParseError, ParseOptions, Source as _};

/// Returns the fields present in the JSON of a message as paths of a `google.protobuf.FieldMask`: schema names
/// separated by dots, in order of appearance. A path ends at a value without fields of its own: a number, text, list,
/// map, null, a message without members, or one with another JSON form.
///
/// ```
/// # use thalweg_protobuf::{Schema, json, sources};
/// # let source = "syntax = 'proto3'; message Book { string main_title = 1; Book sequel = 2; }";
/// # let set = sources::compile(&["book.proto"], |_| Some(source.to_owned()))?;
/// # let schema = Schema::from_descriptor_set(&set)?;
/// let book = schema.message("Book").expect("declared in the file");
/// let json = br#"{"mainTitle": "a", "sequel": {"mainTitle": null}}"#;
/// let paths = json::field_paths(book, json, &json::ParseOptions::default())?;
/// assert_eq!(paths, ["main_title", "sequel.main_title"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Returns an error if the text is not JSON, or if it has unknown members that are not to be ignored. Values are not
/// checked against the types of their fields. The paths, plus 40 bytes for each, may take up to
/// [`ParseOptions::len_max`], because each path repeats the names of all enclosing messages.
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
    walk().map_err(|error: LocatedError| error.locate(json))
}

struct Walk<'t, 'o> {
    reader: Reader<'t>,
    options: &'o ParseOptions,
    /// Path of the current message, with a trailing dot.
    prefix: String,
    paths: Vec<String>,
    /// Bytes used by the paths.
    len: usize,
}

/// Bytes used by a path in addition to its text: the `String` and the allocator's overhead.
const PATH_OVERHEAD: usize = 40;

impl Walk<'_, '_> {
    /// Returns whether the object had any known members. `depth` is the remaining nesting depth.
    fn members(&mut self, message_type: MessageType<'_>, depth: usize) -> Result<bool, LocatedError> {
        let mut open = self.reader.begin_map()?;
        let mut is_any = false;
        while self.reader.next_key(&mut open)? {
            let at = self.reader.offset();
            let key = self.reader.key()?;
            match message_type.field_by_json_name(&key) {
                Some(field) => {
                    self.field(field, depth).map_err(|error| error.in_field(field.json_name()))?;
                    is_any = true;
                }
                None if self.options.ignore_unknown || key.starts_with('[') => {
                    self.reader.skip_value(depth)?;
                }
                None => {
                    let problem = format!("{} has no field `{}`", message_type.full_name(), excerpt(&key));
                    return Err(LocatedError::new(at, problem));
                }
            }
        }
        Ok(is_any)
    }

    fn field(&mut self, field: Field<'_>, depth: usize) -> Result<(), LocatedError> {
        let nested =
            field.message_type().filter(|nested| !field.is_repeated() && nested.well_known().is_none());
        if let Some(nested) = nested
            && self.reader.peek()? == JsonKind::Object
        {
            let Some(depth) = depth.checked_sub(1) else {
                return Err(LocatedError::new(self.reader.offset(), "messages are nested too deeply"));
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
            // A message in a list counts as two levels.
            self.reader.skip_value(2 * depth + 1)?;
        }
        self.len += self.prefix.len() + field.name().len() + PATH_OVERHEAD;
        if self.len > self.options.len_max {
            return Err(LocatedError::too_long(self.reader.offset(), self.options.len_max));
        }
        self.paths.push([&self.prefix, field.name()].concat());
        Ok(())
    }
}
