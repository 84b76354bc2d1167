//! Well-known types, which have their own JSON forms.

use super::Builder;
use crate::printable::excerpt;
use crate::schema::WellKnown;
use crate::schema::table::{Entry, Table};
use crate::text::{field_mask, time};
use crate::transcode::parse_error::LocatedError;
use crate::transcode::source::{Source, ValueKind};
use crate::wire::{Tag, WireType, put_tag, put_varint};

impl<'s, 't, S: Source<'t>> Builder<'s, '_, S> {
    pub(super) fn known(&mut self, table: &'s Table, depth: usize) -> Result<(), LocatedError> {
        let Some(known) = table.known else { return Ok(()) };
        match known {
            WellKnown::Any => self.any(depth),
            WellKnown::Timestamp => {
                let (seconds, nanos) = self.source.timestamp()?;
                self.seconds_and_nanos(seconds, nanos);
                Ok(())
            }
            WellKnown::Duration => self.duration(),
            WellKnown::FieldMask => self.field_mask(),
            WellKnown::Struct => self.map(&table.entries()[0], depth),
            WellKnown::ListValue => self.list_value(&table.entries()[0], depth),
            WellKnown::Value => self.value_of_any_kind(table, depth),
            WellKnown::Wrapper => self.singular(&table.entries()[0], depth),
            WellKnown::Empty => Ok(()),
        }
    }

    fn duration(&mut self) -> Result<(), LocatedError> {
        let at = self.source.offset();
        let text = self.source.text()?;
        let Some((seconds, nanos)) = time::parse_duration(&text) else {
            return Err(LocatedError::new(
                at,
                format!("`{}` is not a duration such as 1.5s", excerpt(&text)),
            ));
        };
        self.seconds_and_nanos(seconds, nanos);
        Ok(())
    }

    fn seconds_and_nanos(&mut self, seconds: i64, nanos: i32) {
        for (number, value) in [(1, seconds), (2, nanos.into())] {
            if value != 0 {
                put_tag(self.wire, Tag::new(number, WireType::Varint));
                put_varint(self.wire, value as u64);
            }
        }
    }

    fn field_mask(&mut self) -> Result<(), LocatedError> {
        let at = self.source.offset();
        let text = self.source.text()?;
        if text.is_empty() {
            return Ok(());
        }
        for path in text.split(',') {
            put_tag(self.wire, Tag::new(1, WireType::Len));
            self.len_prefixed(|builder| {
                if field_mask::to_snake(path, builder.wire) {
                    return Ok(());
                }
                Err(LocatedError::new(at, format!("`{}` is not a path in lowerCamelCase", excerpt(path))))
            })?;
            self.check_len()?;
        }
        Ok(())
    }

    fn list_value(&mut self, values: &'s Entry, depth: usize) -> Result<(), LocatedError> {
        let value_type = self.pool.table(values);
        self.elements(values, |builder| {
            put_varint(builder.wire, values.tag.into());
            builder.len_prefixed(|builder| builder.message(value_type, depth))
        })
    }

    /// Reads a `google.protobuf.Value`.
    fn value_of_any_kind(&mut self, table: &'s Table, depth: usize) -> Result<(), LocatedError> {
        let number = match self.source.peek()? {
            ValueKind::Null => {
                put_tag(self.wire, Tag::new(VALUE_NULL, WireType::Varint));
                self.wire.push(0);
                return self.source.null();
            }
            ValueKind::Bool => VALUE_BOOL,
            ValueKind::Number => return self.value_number(),
            ValueKind::Text => VALUE_STRING,
            ValueKind::Map => VALUE_STRUCT,
            ValueKind::List => VALUE_LIST,
            found @ (ValueKind::Bytes | ValueKind::Time) => {
                return Err(self.error_here(&format!("a google.protobuf.Value cannot hold {}", found.name())));
            }
        };
        // The type is known to have these fields.
        match table.find(number) {
            Some((_, field)) => self.singular(field, depth),
            None => Ok(()),
        }
    }

    /// Reads the number of a `google.protobuf.Value`, which must be finite; in MessagePack it may not be.
    fn value_number(&mut self) -> Result<(), LocatedError> {
        let at = self.source.offset();
        let value = self.source.double()?;
        if !value.is_finite() {
            return Err(LocatedError::new(at, format!("a google.protobuf.Value cannot hold {value}")));
        }
        put_tag(self.wire, Tag::new(VALUE_NUMBER, WireType::Fixed64));
        self.wire.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Reads `{"@type": url, …}` in any order.
    fn any(&mut self, depth: usize) -> Result<(), LocatedError> {
        let at = self.source.offset();
        let Some(url) = self.any_type(depth)? else { return Ok(()) };
        let Some(index) = self.pool.message_of_url(&url) else {
            let url = excerpt(&url);
            return Err(LocatedError::new(at, format!("unknown type `{url}`")).in_field("@type"));
        };
        put_tag(self.wire, Tag::new(1, WireType::Len));
        put_varint(self.wire, url.len() as u64);
        self.wire.extend_from_slice(url.as_bytes());
        let start = self.wire.len();
        put_tag(self.wire, Tag::new(2, WireType::Len));
        let body = self.wire.len() + 1;
        let table = &self.pool.tables[index as usize];
        self.len_prefixed(|builder| builder.any_members(table, depth))?;
        if self.wire.len() == body {
            self.wire.truncate(start);
        }
        Ok(())
    }

    /// Finds the type by looking ahead; most writers put it first. Returns `None` if the Any is empty.
    fn any_type(&mut self, depth: usize) -> Result<Option<std::borrow::Cow<'t, str>>, LocatedError> {
        let start = self.source.clone();
        let at = self.source.offset();
        let mut open = self.source.begin_map()?;
        let mut is_empty = true;
        while self.source.next_key(&mut open)? {
            is_empty = false;
            if self.source.key()? == TYPE {
                let url = self.source.text().map_err(|error| error.in_field(TYPE))?;
                self.source = start;
                return Ok(Some(url));
            }
            self.source.skip_value(depth)?;
        }
        if is_empty { Ok(None) } else { Err(LocatedError::new(at, "missing member `@type` of an Any")) }
    }

    /// Reads the members other than the type.
    fn any_members(&mut self, table: &'s Table, depth: usize) -> Result<(), LocatedError> {
        let start = self.source.offset();
        let mut open = self.source.begin_map()?;
        let mut members = self.members(table);
        let (mut has_type, mut has_value) = (false, false);
        let is_plain = table.known.is_none();
        let Some(depth_of_fields) = depth.checked_sub(1) else {
            return Err(self.error_here("messages are nested too deeply"));
        };
        while self.source.next_key(&mut open)? {
            let at = self.source.offset();
            let key = self.source.key()?;
            let is_second = match &*key {
                TYPE => {
                    self.source.text()?;
                    std::mem::replace(&mut has_type, true)
                }
                VALUE if !is_plain => {
                    let is_second = std::mem::replace(&mut has_value, true);
                    self.message(table, depth).map_err(|error| error.in_field(VALUE))?;
                    is_second
                }
                _ if is_plain => {
                    self.keyed_member(table, &key, at, &mut members, depth_of_fields)?;
                    false
                }
                _ if self.options.ignore_unknown => {
                    self.source.skip_value(depth)?;
                    false
                }
                _ => {
                    let problem =
                        format!("an Any of a {} has no member `{}`", self.name(table), excerpt(&key));
                    return Err(LocatedError::new(at, problem));
                }
            };
            if is_second {
                return Err(LocatedError::new(at, "duplicate member").in_field(&key));
            }
        }
        if is_plain {
            return self.check_required(table, &members);
        }
        if has_value {
            return Ok(());
        }
        Err(LocatedError::new(start, format!("an Any of a {} lacks the member `{VALUE}`", self.name(table))))
    }
}

// Field numbers of `google.protobuf.Value`.
const VALUE_NULL: u32 = 1;
const VALUE_NUMBER: u32 = 2;
const VALUE_STRING: u32 = 3;
const VALUE_BOOL: u32 = 4;
const VALUE_STRUCT: u32 = 5;
const VALUE_LIST: u32 = 6;

const TYPE: &str = "@type";
const VALUE: &str = "value";
