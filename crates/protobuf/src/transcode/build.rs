//! Converts a source to wire bytes, value by value, without an intermediate message.

mod known;

use std::borrow::Cow;

use super::keys::{Keys, SeenFields};
use super::options::ParseOptions;
use super::parse_error::LocatedError;
use super::source::{Source, ValueKind, in_range};
use crate::printable::excerpt;
use crate::schema::pool::{EnumData, FieldData, Pool};
use crate::schema::table::{Entry, FieldShape, Flags, Table};
use crate::schema::{Field, Kind, WellKnown};
use crate::wire::{Tag, WireType, put_tag, put_varint, varint_len, zigzag};

pub(crate) struct Builder<'s, 'o, S> {
    pub(super) pool: &'s Pool,
    pub(super) options: &'s ParseOptions,
    pub(super) source: S,
    pub(super) wire: &'o mut Vec<u8>,
    /// Maximum length of `wire`.
    wire_len_max: usize,
}

impl<'s, 'o, 't, S: Source<'t>> Builder<'s, 'o, S> {
    pub(crate) fn new(pool: &'s Pool, options: &'s ParseOptions, source: S, wire: &'o mut Vec<u8>) -> Self {
        let wire_len_max = wire.len().saturating_add(options.len_max);
        Builder { pool, options, source, wire, wire_len_max }
    }

    /// Appends a whole message. Returns the source, positioned after it.
    pub(crate) fn build(mut self, message_type: u32) -> Result<S, LocatedError> {
        // The message itself does not count.
        let depth = self.options.depth_max.saturating_add(1);
        self.message(&self.pool.tables[message_type as usize], depth)?;
        Ok(self.source)
    }

    /// Appends the wire records of a field. Returns the source, positioned after its value.
    pub(crate) fn build_field(mut self, field: Field<'s>) -> Result<S, LocatedError> {
        let table = field.message().table();
        let mut members = self.members(table);
        let data = &self.pool.fields[field.index() as usize];
        self.member(table, data, &mut members, self.options.depth_max)?;
        Ok(self.source)
    }

    /// Appends the wire record of one value of a field. Returns the source, positioned after it.
    pub(crate) fn build_value(mut self, field: Field<'s>) -> Result<S, LocatedError> {
        let entry = field.entry();
        if !entry.flags.has(Flags::PACKED) {
            // An ignored value is omitted, as in a map.
            self.map_value(entry, self.options.depth_max)?;
        } else if let Some(value) = self.number(entry)? {
            // A single element can be read packed or unpacked.
            put_tag(self.wire, Tag::new(entry.number, entry.kind.wire_type()));
            put_number(self.wire, entry.kind, value);
        }
        Ok(self.source)
    }

    /// Appends the wire records of a message; `depth` is the remaining nesting depth.
    pub(super) fn message(&mut self, table: &'s Table, depth: usize) -> Result<(), LocatedError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.error_here("messages are nested too deeply"));
        };
        if table.known.is_some() {
            return self.known(table, depth);
        }
        let mut open = self.source.begin_map()?;
        let mut members = self.members(table);
        while self.source.next_key(&mut open)? {
            self.next_member(table, &mut members, depth)?;
        }
        self.check_required(table, &members)
    }

    /// Checks required fields at the end of a message's members.
    #[inline]
    pub(super) fn check_required(&self, table: &Table, members: &Members<'_>) -> Result<(), LocatedError> {
        if table.required.is_empty() {
            return Ok(());
        }
        let is_missing = |index: &&u16| !self.options.allow_partial && !members.fields.has((**index).into());
        match table.required.iter().find(is_missing) {
            None => Ok(()),
            Some(&index) => {
                let field = self.pool.field(&table.entries()[usize::from(index)]).json_name.text();
                Err(self.error_here(&format!("missing required field `{field}`")))
            }
        }
    }

    /// Whether an invalid value of the field may be ignored.
    fn may_ignore(&self, field: &Entry) -> bool {
        self.options.ignore_unknown && (self.options.allow_partial || !field.flags.has(Flags::REQUIRED))
    }

    #[inline]
    fn next_member(
        &mut self,
        table: &'s Table,
        members: &mut Members<'s>,
        depth: usize,
    ) -> Result<(), LocatedError> {
        // Most writers follow the order of the schema.
        let expected = members.declared.get(members.next);
        if let Some(field) = expected.filter(|field| self.source.take_name(&field.json_name)) {
            members.next += 1;
            return self.member(table, field, members, depth);
        }
        let at = self.source.offset();
        let key = self.source.key()?;
        self.keyed_member(table, &key, at, members, depth)
    }

    /// Reads the value of the member `key`, which was at `at`.
    pub(super) fn keyed_member(
        &mut self,
        table: &'s Table,
        key: &str,
        at: usize,
        members: &mut Members<'s>,
        depth: usize,
    ) -> Result<(), LocatedError> {
        match self.field_of_key(table.message, key) {
            Some(index) => {
                let field = &self.pool.fields[index as usize];
                // Extensions follow all declared fields, so nothing is expected after them.
                members.next = (index - members.first) as usize + 1;
                self.member(table, field, members, depth)
            }
            None if self.options.ignore_unknown => self.source.skip_value(depth),
            None => {
                let (name, key) = (self.name(table), excerpt(key));
                Err(LocatedError::new(at, format!("{name} has no field `{key}`")))
            }
        }
    }

    #[inline]
    fn field_of_key(&self, message: u32, key: &str) -> Option<u32> {
        let extension = key.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let index = extension.and_then(|name| self.pool.extension_of(message, name));
        index.or_else(|| self.pool.field_of_key(message, key))
    }

    #[inline]
    fn member(
        &mut self,
        table: &'s Table,
        data: &'s FieldData,
        members: &mut Members<'s>,
        depth: usize,
    ) -> Result<(), LocatedError> {
        let index = usize::from(data.entry);
        let field = &table.entries()[index];
        let done = self.member_value(field, index, members, depth);
        done.and_then(|()| self.check_len()).map_err(|error| error.in_field(data.json_name.text()))
    }

    #[inline]
    fn member_value(
        &mut self,
        field: &'s Entry,
        index: usize,
        members: &mut Members<'s>,
        depth: usize,
    ) -> Result<(), LocatedError> {
        if members.fields.set(index as u32) {
            return Err(self.error_here("duplicate field"));
        }
        if self.source.peek()? == ValueKind::Null
            && !(field.shape() == FieldShape::Singular && self.takes_null(field))
        {
            if field.flags.has(Flags::REQUIRED) && !self.options.allow_partial {
                return Err(self.error_here("a required field must not be null"));
            }
            return self.source.null();
        }
        if field.is_in_oneof() && members.oneofs.set(field.slot) {
            return Err(self.error_here("another field of the same oneof is set"));
        }
        match field.shape() {
            FieldShape::Singular => self.singular(field, depth),
            FieldShape::Repeated => self.repeated(field, depth),
            FieldShape::Map => self.map(field, depth),
        }
    }

    /// Whether null is a value of the field rather than its absence.
    fn takes_null(&self, field: &Entry) -> bool {
        match field.kind {
            Kind::Message | Kind::Group => self.pool.table(field).known == Some(WellKnown::Value),
            Kind::Enum => self.enumeration_of(field).is_null(),
            _ => false,
        }
    }

    #[inline]
    pub(super) fn singular(&mut self, field: &'s Entry, depth: usize) -> Result<(), LocatedError> {
        match field.kind {
            Kind::String | Kind::Bytes | Kind::Message | Kind::Group => {
                let start = self.wire.len();
                self.value(field, depth)?;
                // A length of zero.
                if field.is_implicit() && self.wire.last() == Some(&0) {
                    let empty_len = varint_len(field.tag.into()) + 1;
                    if self.wire.len() == start + empty_len {
                        self.wire.truncate(start);
                    }
                }
            }
            kind => {
                let value = self.number(field)?.filter(|value| *value != 0 || !field.is_implicit());
                if let Some(value) = value {
                    put_varint(self.wire, field.tag.into());
                    put_number(self.wire, kind, value);
                }
            }
        }
        Ok(())
    }

    /// Appends a tag and a string, bytes or message.
    #[inline]
    fn value(&mut self, field: &'s Entry, depth: usize) -> Result<(), LocatedError> {
        put_varint(self.wire, field.tag.into());
        match field.kind {
            Kind::String => {
                let text = self.source.text()?;
                put_varint(self.wire, text.len() as u64);
                self.wire.extend_from_slice(text.as_bytes());
                Ok(())
            }
            Kind::Bytes => self.len_prefixed(|builder| builder.source.bytes(builder.wire)),
            _ => {
                let table = self.pool.table(field);
                if field.kind == Kind::Group {
                    self.message(table, depth)?;
                    put_varint(
                        self.wire,
                        u64::from(field.tag - WireType::StartGroup as u32 + WireType::EndGroup as u32),
                    );
                    return Ok(());
                }
                self.len_prefixed(|builder| builder.message(table, depth))
            }
        }
    }

    /// Appends the output of `body` with its length prefix.
    #[inline]
    pub(super) fn len_prefixed(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<(), LocatedError>,
    ) -> Result<(), LocatedError> {
        let start = self.wire.len();
        // Most are shorter than 128 bytes and need one length byte. Longer ones are moved.
        self.wire.push(0);
        body(self)?;
        let len = self.wire.len() - start - 1;
        if len < 0x80 {
            self.wire[start] = len as u8;
        } else {
            self.widen_len(start, len);
        }
        Ok(())
    }

    #[inline(never)]
    fn widen_len(&mut self, start: usize, len: usize) {
        let more = varint_len(len as u64) - 1;
        let end = self.wire.len();
        self.wire.resize(end + more, 0);
        self.wire.copy_within(start + 1..end, start + 1 + more);
        let mut rest = len;
        for byte in &mut self.wire[start..start + more] {
            *byte = rest as u8 | 0x80;
            rest >>= 7;
        }
        self.wire[start + more] = rest as u8;
    }

    fn repeated(&mut self, field: &'s Entry, depth: usize) -> Result<(), LocatedError> {
        if field.kind == Kind::String {
            return self.texts(field, depth);
        }
        if !field.flags.has(Flags::PACKED) {
            return self.elements(field, |builder| match field.kind {
                Kind::Bytes | Kind::Message | Kind::Group => builder.value(field, depth),
                kind => {
                    if let Some(value) = builder.number(field)? {
                        put_varint(builder.wire, field.tag.into());
                        put_number(builder.wire, kind, value);
                    }
                    Ok(())
                }
            });
        }
        let start = self.wire.len();
        put_varint(self.wire, field.tag.into());
        let body = self.wire.len() + 1;
        self.len_prefixed(|builder| builder.packed(field))?;
        if self.wire.len() == body {
            self.wire.truncate(start);
        }
        Ok(())
    }

    /// Appends strings, plain ones in batches and others one by one.
    fn texts(&mut self, field: &'s Entry, depth: usize) -> Result<(), LocatedError> {
        let mut open = self.source.begin_list()?;
        let mut index = 0;
        while self.source.next_element(&mut open)? {
            self.value(field, depth).map_err(|error| error.in_element(index))?;
            index += 1 + self.source.plain_strings(field.tag, self.wire);
            self.check_len()?;
        }
        Ok(())
    }

    /// Appends packed numbers, with a separate loop for each kind.
    fn packed(&mut self, field: &'s Entry) -> Result<(), LocatedError> {
        macro_rules! by_kind {
            ($($kind:ident)*) => {
                match field.kind {
                    $(Kind::$kind => self.elements(field, |builder| {
                        let value = builder.plain_number(Kind::$kind)?;
                        put_number(builder.wire, Kind::$kind, value);
                        Ok(())
                    }),)*
                    kind => self.elements(field, |builder| {
                        if let Some(value) = builder.number(field)? {
                            put_number(builder.wire, kind, value);
                        }
                        Ok(())
                    }),
                }
            };
        }
        by_kind!(Double Float Int32 Int64 Uint32 Uint64 Sint32 Sint64 Fixed32 Fixed64 Sfixed32 Sfixed64 Bool)
    }

    #[inline]
    pub(super) fn elements(
        &mut self,
        field: &Entry,
        mut element: impl FnMut(&mut Self) -> Result<(), LocatedError>,
    ) -> Result<(), LocatedError> {
        let mut open = self.source.begin_list()?;
        let mut index = 0;
        while self.source.next_element(&mut open)? {
            let is_null = field.kind.is_message() && self.is_stray_null(field)?;
            let done =
                if is_null { Err(self.error_here("an element must not be null")) } else { element(self) };
            done.map_err(|error| error.in_element(index))?;
            self.check_len()?;
            index += 1;
        }
        Ok(())
    }

    /// Checks the length after each member, element and entry, whose output is proportional to its text.
    #[inline]
    pub(super) fn check_len(&self) -> Result<(), LocatedError> {
        if self.wire.len() <= self.wire_len_max {
            return Ok(());
        }
        Err(LocatedError::too_long(self.source.offset(), self.options.len_max))
    }

    /// Whether null appears in place of a value. Numbers and strings detect that themselves.
    #[inline(always)]
    fn is_stray_null(&mut self, field: &Entry) -> Result<bool, LocatedError> {
        Ok(self.source.peek()? == ValueKind::Null && !self.takes_null(field))
    }

    pub(super) fn map(&mut self, field: &'s Entry, depth: usize) -> Result<(), LocatedError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.error_here("messages are nested too deeply"));
        };
        let [key_field, value_field] = self.pool.table(field).entries() else {
            return Err(self.error_here("the schema has no entry for this map"));
        };
        let mut open = self.source.begin_map()?;
        let mut keys = Keys::new();
        while self.source.next_key(&mut open)? {
            let at = self.source.offset();
            let start = self.wire.len();
            put_varint(self.wire, field.tag.into());
            let mut is_ignored = false;
            self.len_prefixed(|builder| {
                let key = builder.map_key(key_field)?;
                let step = key.clone();
                if !keys.insert(key) {
                    return Err(LocatedError::new(at, "duplicate key").in_field(&step.text()));
                }
                let entry = builder.map_value(value_field, depth);
                is_ignored = !entry.map_err(|error| error.in_field(&step.text()))?;
                Ok(())
            })?;
            if is_ignored {
                self.wire.truncate(start);
            }
            self.check_len()?;
        }
        Ok(())
    }

    fn map_key(&mut self, field: &Entry) -> Result<Key<'t>, LocatedError> {
        put_varint(self.wire, field.tag.into());
        if field.kind == Kind::String {
            let key = self.source.key()?;
            put_varint(self.wire, key.len() as u64);
            self.wire.extend_from_slice(key.as_bytes());
            return Ok(Key::Text(key));
        }
        let number = if field.kind == Kind::Bool {
            self.source.bool_key()?.into()
        } else {
            let at = self.source.offset();
            key_number(field.kind, self.source.integer_key()?, at)?
        };
        put_number(self.wire, field.kind, number);
        Ok(Key::Number(number))
    }

    /// Returns false if the value is to be ignored.
    fn map_value(&mut self, field: &'s Entry, depth: usize) -> Result<bool, LocatedError> {
        if self.is_stray_null(field)? {
            return Err(self.error_here("a value must not be null"));
        }
        if let Kind::String | Kind::Bytes | Kind::Message | Kind::Group = field.kind {
            return self.value(field, depth).map(|()| true);
        }
        let Some(value) = self.number(field)? else { return Ok(false) };
        put_varint(self.wire, field.tag.into());
        put_number(self.wire, field.kind, value);
        Ok(true)
    }

    /// Reads a number, boolean or enum as 64 bits: signed 32-bit values are extended, floats are in the low half.
    /// Returns `None` for an enum name that is to be ignored.
    #[inline]
    fn number(&mut self, field: &Entry) -> Result<Option<u64>, LocatedError> {
        match field.kind {
            Kind::Enum => self.enumeration(field),
            kind => self.plain_number(kind).map(Some),
        }
    }

    #[inline(always)]
    fn plain_number(&mut self, kind: Kind) -> Result<u64, LocatedError> {
        let source = &mut self.source;
        Ok(match kind {
            Kind::Double => source.double()?.to_bits(),
            Kind::Float => source.float()?.to_bits().into(),
            Kind::Bool => source.bool()?.into(),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 | Kind::Enum => {
                let at = source.offset();
                in_range::<i32, _>(source.int64()?, at)? as u64
            }
            Kind::Uint32 | Kind::Fixed32 => {
                let at = source.offset();
                in_range::<u32, _>(source.uint64()?, at)?.into()
            }
            Kind::Uint64 | Kind::Fixed64 => source.uint64()?,
            _ => source.int64()? as u64,
        })
    }

    fn enumeration(&mut self, field: &Entry) -> Result<Option<u64>, LocatedError> {
        let enumeration = self.enumeration_of(field);
        let at = self.source.offset();
        let found = self.source.peek()?;
        if found == ValueKind::Null && enumeration.is_null() {
            return self.source.null().map(|()| Some(0));
        }
        let name = &enumeration.name;
        if found != ValueKind::Number {
            let text = self.source.text()?;
            return match enumeration.value_named(&text) {
                Some(value) => Ok(Some(i64::from(value.number) as u64)),
                None if self.may_ignore(field) => Ok(None),
                None => Err(LocatedError::new(at, format!("{name} has no value `{}`", excerpt(&text)))),
            };
        }
        let number = self.plain_number(Kind::Int32)?;
        if !field.is_closed() || enumeration.value(number as i32).is_some() {
            return Ok(Some(number));
        }
        if self.may_ignore(field) {
            return Ok(None);
        }
        Err(LocatedError::new(
            at,
            format!("the closed enum {name} has no value with the number {}", number as i32),
        ))
    }

    fn enumeration_of(&self, field: &Entry) -> &'s EnumData {
        &self.pool.enums[field.type_index as usize]
    }

    /// Returns the state before the first member of a message.
    #[inline]
    pub(super) fn members(&self, table: &Table) -> Members<'s> {
        let fields = &self.pool.messages[table.message as usize].fields;
        let declared = &self.pool.fields[fields.start as usize..fields.end as usize];
        Members {
            fields: SeenFields::default(),
            oneofs: SeenFields::default(),
            declared,
            first: fields.start,
            next: 0,
        }
    }

    /// Returns the full name of a type.
    pub(super) fn name(&self, table: &Table) -> &'s str {
        &self.pool.messages[table.message as usize].name
    }

    /// Returns an error at the source's position.
    #[cold]
    pub(super) fn error_here(&self, problem: &str) -> LocatedError {
        LocatedError::new(self.source.offset(), problem)
    }
}

/// The members of a message seen so far.
pub(super) struct Members<'s> {
    /// By index of the entry.
    fields: SeenFields,
    /// By the slot that the members of a oneof share.
    oneofs: SeenFields,
    /// The declared fields of the message.
    declared: &'s [FieldData],
    /// Index of the first declared field in the pool.
    first: u32,
    /// Position in `declared` of the probable next field.
    next: usize,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key<'t> {
    Number(u64),
    Text(Cow<'t, str>),
}

impl Key<'_> {
    /// Formats the key for the path of an error.
    fn text(&self) -> String {
        match self {
            Key::Number(number) => (*number as i64).to_string(),
            Key::Text(text) => excerpt(text),
        }
    }
}

/// Checks the key of a map against the range of its type.
fn key_number(kind: Kind, number: i128, at: usize) -> Result<u64, LocatedError> {
    Ok(match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => in_range::<i32, _>(number, at)? as u64,
        Kind::Uint32 | Kind::Fixed32 => in_range::<u32, _>(number, at)?.into(),
        Kind::Uint64 | Kind::Fixed64 => in_range(number, at)?,
        _ => in_range::<i64, _>(number, at)? as u64,
    })
}

/// Appends `value`, as returned by [`Builder::number`].
#[inline(always)]
pub(super) fn put_number(wire: &mut Vec<u8>, kind: Kind, value: u64) {
    match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => wire.extend_from_slice(&value.to_le_bytes()),
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => wire.extend_from_slice(&(value as u32).to_le_bytes()),
        Kind::Sint32 | Kind::Sint64 => put_varint(wire, zigzag(value as i64)),
        _ => put_varint(wire, value),
    }
}
