//! Wire bytes to a sink, record by record, without a message in between.
//!
//! That works as long as a field's records lie together and each singular field comes once, which is how everybody
//! writes messages. The wire allows more: records of a repeated field anywhere, messages in pieces that are to be
//! merged, the last of several values. On such input the printer stops with [`Stop::Merge`], and the caller brings it
//! into order first.

use super::error::PrintError;
use super::keys::{Keys, Seen};
use super::options::PrintOptions;
use super::row;
use super::sink::{NotText, Sink};
use super::tables::{Field, Shape, Tables, Type, is_null};
use crate::schema::{Kind, Pool};
use crate::wire::{Reader, Tag, WireError, WireErrorKind, WireType, unzigzag};

/// Why the printer did not come to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The records are not in the order of a message that was written in one go.
    Merge,
    /// Something is missing, unless it comes behind: then merging brings it.
    Incomplete(Box<PrintError>),
    Error(Box<PrintError>),
}

impl Stop {
    /// What there is to say when everything is in order.
    pub(super) fn into_error(self) -> PrintError {
        match self {
            Stop::Incomplete(error) | Stop::Error(error) => *error,
            // What was encoded in one go is in order.
            Stop::Merge => PrintError::Unordered,
        }
    }
}

impl From<PrintError> for Stop {
    #[cold]
    fn from(error: PrintError) -> Stop {
        Stop::Error(Box::new(error))
    }
}

impl From<WireError> for Stop {
    #[cold]
    fn from(error: WireError) -> Stop {
        Stop::Error(Box::new(PrintError::Decode(error.into())))
    }
}

/// Brings a message into order: decodes and encodes it.
pub(crate) type Merge<'s> = &'s dyn Fn(u32, &[u8]) -> Result<Vec<u8>, PrintError>;

pub(crate) struct Printer<'s, S> {
    pub(super) pool: &'s Pool,
    pub(super) tables: &'s Tables,
    pub(super) options: &'s PrintOptions,
    pub(super) sink: S,
    pub(super) merge: Merge<'s>,
    /// How long the output may become, with what was in it before.
    end_max: usize,
    /// Bring what an Any holds into order before it is printed, and not only if it has to be.
    pub(super) merges_any: bool,
}

/// Where the records of a message end.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// With the bytes.
    Bytes,
    /// At the end of the group of this number.
    Group(u32),
}

impl<'s, S: Sink> Printer<'s, S> {
    pub(crate) fn new(pool: &'s Pool, options: &'s PrintOptions, sink: S, merge: Merge<'s>) -> Self {
        let end_max = sink.mark().len.saturating_add(options.len_max);
        Printer { pool, tables: pool.transcode_tables(), options, sink, merge, end_max, merges_any: false }
    }

    /// A whole message.
    pub(crate) fn print(&mut self, message_type: u32, wire: &[u8]) -> Result<(), Stop> {
        // The message itself does not count.
        let depth = self.options.depth_max.saturating_add(1);
        let tables = self.tables;
        self.message(tables.message(message_type as usize), &mut Reader::new(wire), End::Bytes, depth)
    }

    /// `depth` more messages may lie in one another.
    pub(super) fn message(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
    ) -> Result<(), Stop> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(reader.error(WireErrorKind::TooDeep).into());
        };
        self.check_len()?;
        if message_type.known.is_some() {
            return self.known(message_type, reader, end, depth);
        }
        let mut open = self.sink.begin_map();
        self.fields(message_type, reader, end, depth, &mut open)?;
        self.sink.end_map(open);
        Ok(())
    }

    pub(super) fn fields(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        end: End,
        depth: usize,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        let mut seen = Seen::default();
        while !reader.is_empty() {
            let start = reader.offset();
            let tag = reader.tag_bits()?;
            match message_type.field_of_tag(tag) {
                Some(field) => match field.shape {
                    Shape::Singular => self.singular(field, tag, reader, depth, &mut seen, open)?,
                    Shape::Repeated => self.repeated(field, tag, reader, depth, &mut seen, open)?,
                    Shape::Map => self.map(field, reader, depth, &mut seen, open)?,
                },
                None if message_type.is_message_set && tag == ITEM.bits() => {
                    self.message_set_item(message_type, reader, depth, &mut seen, open)?;
                }
                None => {
                    if skip(tag, start, reader, end)? {
                        return self.unset(message_type, &seen, open);
                    }
                }
            }
        }
        at_end(reader, end)?;
        self.unset(message_type, &seen, open)
    }

    #[inline]
    pub(super) fn name(&mut self, field: &Field, open: &mut S::Open) {
        self.sink.name(open, if self.options.schema_names { &field.schema_name } else { &field.json_name });
    }

    #[inline]
    fn singular(
        &mut self,
        field: &'s Field,
        tag: u32,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        match field.kind {
            Kind::String | Kind::Bytes => {
                let value = reader.len_prefixed()?;
                if seen.set(field.seen) {
                    return Err(Stop::Merge);
                }
                if value.is_empty() && self.is_left_out(field) {
                    return Ok(());
                }
                self.name(field, open);
                self.text_or_bytes(field, value)
            }
            Kind::Message => {
                if seen.set(field.seen) {
                    return Err(Stop::Merge);
                }
                self.name(field, open);
                self.nested(field, tag, reader, depth)
            }
            _ => {
                let value = number(field.kind, reader)?;
                if field.is_closed && !self.has(field, value) {
                    return Ok(());
                }
                if seen.set(field.seen) {
                    return Err(Stop::Merge);
                }
                if value == 0 && self.is_left_out(field) {
                    return Ok(());
                }
                self.name(field, open);
                self.number(field, value);
                Ok(())
            }
        }
    }

    /// Whether a closed enum has a value of this number.
    #[inline]
    fn has(&self, field: &Field, value: u64) -> bool {
        field.enumeration(self.pool).value(value as i32).is_some()
    }

    /// Whether the field is not printed when its value is zero or empty.
    #[inline]
    fn is_left_out(&self, field: &Field) -> bool {
        field.is_implicit && !self.options.defaults
    }

    fn repeated(
        &mut self,
        field: &'s Field,
        mut tag: u32,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        let mut list = None;
        loop {
            match field.kind {
                Kind::String | Kind::Bytes => {
                    let value = reader.len_prefixed()?;
                    self.element(field, &mut list, seen, open)?;
                    self.text_or_bytes(field, value)?;
                }
                Kind::Message => {
                    self.element(field, &mut list, seen, open)?;
                    self.nested(field, tag, reader, depth)?;
                }
                _ if tag & 7 == WireType::Len as u32 => {
                    self.packed(field, reader.nested()?, &mut list, seen, open)?;
                }
                kind => {
                    let value = number(kind, reader)?;
                    self.number_element(field, value, &mut list, seen, open)?;
                }
            }
            match following(field, reader)? {
                Some(following) => tag = following,
                None => break,
            }
        }
        if let Some(list) = list {
            self.sink.end_list(list);
        }
        Ok(())
    }

    #[inline]
    fn number_element(
        &mut self,
        field: &'s Field,
        value: u64,
        list: &mut Option<S::Open>,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        if field.is_closed && !self.has(field, value) {
            return Ok(());
        }
        self.element(field, list, seen, open)?;
        self.number(field, value);
        Ok(())
    }

    /// One record of packed numbers.
    fn packed(
        &mut self,
        field: &'s Field,
        mut packed: Reader<'_>,
        list: &mut Option<S::Open>,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        if field.kind == Kind::Enum {
            while !packed.is_empty() {
                let value = number(Kind::Enum, &mut packed)?;
                self.number_element(field, value, list, seen, open)?;
            }
            return Ok(());
        }
        if packed.is_empty() {
            return Ok(());
        }
        let list = self.list(field, list, seen, open)?;
        row::read(field.kind, packed, |words| self.sink.numbers(list, field.kind, words))?;
        self.check_len()
    }

    /// Before each element.
    #[inline]
    fn element(
        &mut self,
        field: &Field,
        list: &mut Option<S::Open>,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        let list = self.list(field, list, seen, open)?;
        self.sink.element(list);
        self.check_len()
    }

    /// The list, which the first element opens. A list without elements is as if it were not there.
    #[inline]
    fn list<'l>(
        &mut self,
        field: &Field,
        list: &'l mut Option<S::Open>,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<&'l mut S::Open, Stop> {
        if list.is_none() {
            if seen.set(field.seen) {
                return Err(Stop::Merge);
            }
            self.name(field, open);
        }
        Ok(list.get_or_insert_with(|| self.sink.begin_list()))
    }

    #[inline]
    fn check_len(&self) -> Result<(), Stop> {
        if self.sink.mark().len <= self.end_max {
            return Ok(());
        }
        Err(PrintError::TooLong { max: self.options.len_max }.into())
    }

    fn map(
        &mut self,
        field: &'s Field,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(reader.error(WireErrorKind::TooDeep).into());
        };
        let mut map = None;
        let mut keys = Keys::new();
        loop {
            let entry = Entry::read(self.tables.message(field.target()), &mut reader.nested()?)?;
            let value = entry.value_field;
            let is_known = !value.is_closed || self.has(value, entry.value.number_or_zero(value));
            if is_known {
                if !keys.insert(entry.key) {
                    return Err(Stop::Merge);
                }
                if map.is_none() {
                    if seen.set(field.seen) {
                        return Err(Stop::Merge);
                    }
                    self.name(field, open);
                }
                let map = map.get_or_insert_with(|| self.sink.begin_map());
                self.entry(&entry, map, depth)?;
            }
            if following(field, reader)?.is_none() {
                break;
            }
        }
        if let Some(map) = map {
            self.sink.end_map(map);
        }
        Ok(())
    }

    /// A key and its value.
    pub(super) fn entry(
        &mut self,
        entry: &Entry<'s, '_>,
        map: &mut S::Open,
        depth: usize,
    ) -> Result<(), Stop> {
        let key_field = entry.key_field;
        match (entry.key, key_field.kind) {
            (Key::Text(key), _) => {
                self.sink.text_key(map, key).map_err(|NotText| not_text(self.pool, key_field))?;
            }
            (Key::Number(key), Kind::Bool) => self.sink.bool_key(map, key != 0),
            (Key::Number(key), Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64) => {
                self.sink.uint_key(map, key);
            }
            (Key::Number(key), _) => self.sink.int_key(map, key as i64),
        }
        let field = entry.value_field;
        match (entry.value, field.kind) {
            (Value::Nested(mut reader), _) => {
                self.message(self.tables.message(field.target()), &mut reader, End::Bytes, depth)
            }
            (Value::Absent, Kind::Message) => {
                self.message(self.tables.message(field.target()), &mut Reader::new(&[]), End::Bytes, depth)
            }
            (Value::Bytes(value), _) => self.text_or_bytes(field, value),
            (Value::Absent, Kind::String | Kind::Bytes) => self.text_or_bytes(field, &[]),
            (value, _) => {
                self.number(field, value.number_or_zero(field));
                Ok(())
            }
        }
    }

    /// The message in a field.
    #[inline]
    fn nested(
        &mut self,
        field: &'s Field,
        tag: u32,
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<(), Stop> {
        let message_type = self.tables.message(field.target());
        if tag & 7 == WireType::StartGroup as u32 {
            return self.message(message_type, reader, End::Group(tag >> 3), depth);
        }
        self.message(message_type, &mut reader.nested()?, End::Bytes, depth)
    }

    #[inline]
    pub(super) fn text_or_bytes(&mut self, field: &Field, value: &[u8]) -> Result<(), Stop> {
        if field.kind == Kind::Bytes {
            self.sink.bytes(value);
            return Ok(());
        }
        self.sink.text(value).map_err(|NotText| not_text(self.pool, field))
    }

    /// `value` as [`number`] gives it.
    #[inline]
    pub(super) fn number(&mut self, field: &Field, value: u64) {
        match field.kind {
            Kind::Enum => self.enumeration(field, value as i32),
            kind => self.sink.number(kind, value),
        }
    }

    fn enumeration(&mut self, field: &Field, number: i32) {
        let enumeration = field.enumeration(self.pool);
        match enumeration.value(number) {
            _ if number == 0 && is_null(enumeration) => self.sink.null(),
            Some(value) if !self.options.enum_numbers => {
                // The name is a `str`.
                let _ = self.sink.text(value.name.as_bytes());
            }
            _ => self.sink.int32(number),
        }
    }

    /// At the end of a message's fields: those that must be there, and those without presence that did not come, if they
    /// are wanted.
    fn unset(&mut self, message_type: &'s Type, seen: &Seen, open: &mut S::Open) -> Result<(), Stop> {
        if !self.options.allow_partial {
            self.check_required(message_type, seen)?;
        }
        if !self.options.defaults {
            return Ok(());
        }
        for field in message_type.fields.iter().filter(|field| !seen.has(field.seen) && !field.is_extension) {
            match field.shape {
                Shape::Singular if !field.is_implicit => {}
                Shape::Singular => {
                    self.name(field, open);
                    match field.kind {
                        Kind::String | Kind::Bytes => self.text_or_bytes(field, &[])?,
                        _ => self.number(field, 0),
                    }
                }
                Shape::Repeated => {
                    self.name(field, open);
                    let list = self.sink.begin_list();
                    self.sink.end_list(list);
                }
                Shape::Map => {
                    self.name(field, open);
                    let map = self.sink.begin_map();
                    self.sink.end_map(map);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn check_required(&self, message_type: &Type, seen: &Seen) -> Result<(), Stop> {
        match message_type.required.iter().find(|&&index| !seen.has(index)) {
            None => Ok(()),
            Some(&index) => {
                let field = message_type.fields[usize::from(index)].index;
                let field = self.pool.full_name(&self.pool.fields[field as usize]);
                Err(Stop::Incomplete(Box::new(PrintError::Required { field })))
            }
        }
    }

    /// An extension in the old form of message sets: a group of its number and its bytes.
    fn message_set_item(
        &mut self,
        message_type: &'s Type,
        reader: &mut Reader<'_>,
        depth: usize,
        seen: &mut Seen,
        open: &mut S::Open,
    ) -> Result<(), Stop> {
        let (mut number, mut message) = (None, None);
        while let Some(tag) = next_tag(reader, End::Group(ITEM.number))? {
            if tag == ITEM_TYPE_ID.bits() && number.is_none() {
                number = Some(reader.varint()? as u32);
            } else if tag == ITEM_MESSAGE.bits() && message.is_none() {
                message = Some(reader.nested()?);
            } else {
                let tag = checked(tag, reader.offset())?;
                reader.skip(tag, depth)?;
            }
        }
        let (Some(number), Some(mut message)) = (number, message) else { return Ok(()) };
        let field = message_type.field_of_number(number);
        let Some(field) = field.filter(|field| field.kind == Kind::Message && field.shape == Shape::Singular)
        else {
            return Ok(());
        };
        if seen.set(field.seen) {
            return Err(Stop::Merge);
        }
        self.name(field, open);
        self.message(self.tables.message(field.target()), &mut message, End::Bytes, depth)
    }
}

const ITEM: Tag = Tag::new(1, WireType::StartGroup);
const ITEM_TYPE_ID: Tag = Tag::new(2, WireType::Varint);
const ITEM_MESSAGE: Tag = Tag::new(3, WireType::Len);

/// One entry of a map, with what is in it not yet read further.
pub(super) struct Entry<'s, 'w> {
    pub(super) key_field: &'s Field,
    pub(super) value_field: &'s Field,
    pub(super) key: Key<'w>,
    pub(super) value: Value<'w>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key<'w> {
    Number(u64),
    Text(&'w [u8]),
}

#[derive(Clone, Copy)]
pub(super) enum Value<'w> {
    Absent,
    Number(u64),
    Bytes(&'w [u8]),
    Nested(Reader<'w>),
}

impl Value<'_> {
    /// Zero is the first value of an open enum; a closed one may have another.
    #[inline]
    pub(super) fn number_or_zero(self, field: &Field) -> u64 {
        match self {
            Value::Number(number) => number,
            _ => field.default_number,
        }
    }
}

impl<'s, 'w> Entry<'s, 'w> {
    pub(super) fn read(entry_type: &'s Type, reader: &mut Reader<'w>) -> Result<Entry<'s, 'w>, Stop> {
        let [key_field, value_field] = &*entry_type.fields else {
            return Err(reader.error(WireErrorKind::FieldNumber).into());
        };
        let key = if key_field.kind == Kind::String { Key::Text(&[]) } else { Key::Number(0) };
        let mut entry = Entry { key_field, value_field, key, value: Value::Absent };
        while !reader.is_empty() {
            let start = reader.offset();
            let tag = reader.tag_bits()?;
            if tag == key_field.tag {
                entry.key = match key_field.kind {
                    Kind::String => Key::Text(reader.len_prefixed()?),
                    kind => Key::Number(number(kind, reader)?),
                };
            } else if tag == value_field.tag {
                entry.value = match value_field.kind {
                    Kind::String | Kind::Bytes => Value::Bytes(reader.len_prefixed()?),
                    // Two would have to be merged.
                    Kind::Message if !matches!(entry.value, Value::Absent) => return Err(Stop::Merge),
                    Kind::Message => Value::Nested(reader.nested()?),
                    kind => Value::Number(number(kind, reader)?),
                };
            } else {
                skip(tag, start, reader, End::Bytes)?;
            }
        }
        Ok(entry)
    }
}

/// A number of any kind as 64 bits: 32-bit signed ones are extended, floats are in the low half.
#[inline(always)]
pub(super) fn number(kind: Kind, reader: &mut Reader<'_>) -> Result<u64, WireError> {
    Ok(match kind {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => return reader.fixed64(),
        Kind::Float | Kind::Fixed32 => reader.fixed32()?.into(),
        Kind::Sfixed32 => reader.fixed32()? as i32 as u64,
        _ => {
            let value = reader.varint()?;
            match kind {
                Kind::Bool => u64::from(value != 0),
                Kind::Int32 | Kind::Enum => value as i32 as u64,
                Kind::Uint32 => u64::from(value as u32),
                Kind::Sint32 => unzigzag(u64::from(value as u32)) as u64,
                Kind::Sint64 => unzigzag(value) as u64,
                _ => value,
            }
        }
    })
}

/// The next record's tag, stepped over, if it is of this field too.
#[inline]
fn following(field: &Field, reader: &mut Reader<'_>) -> Result<Option<u32>, WireError> {
    if reader.is_empty() {
        return Ok(None);
    }
    let before = *reader;
    let tag = reader.tag_bits()?;
    if tag == field.tag || tag == field.other_tag {
        return Ok(Some(tag));
    }
    *reader = before;
    Ok(None)
}

/// The next tag, as it is written; `None` at the end of the message.
pub(super) fn next_tag(reader: &mut Reader<'_>, end: End) -> Result<Option<u32>, WireError> {
    if reader.is_empty() {
        at_end(reader, end)?;
        return Ok(None);
    }
    let start = reader.offset();
    let tag = reader.tag_bits()?;
    if tag & 7 != WireType::EndGroup as u32 {
        return Ok(Some(tag));
    }
    match end {
        End::Group(number) if number == tag >> 3 => Ok(None),
        _ => Err(WireError { offset: start, kind: WireErrorKind::EndGroup }),
    }
}

/// The bytes are used up: a group must not end so.
fn at_end(reader: &Reader<'_>, end: End) -> Result<(), WireError> {
    match end {
        End::Bytes => Ok(()),
        End::Group(_) => Err(reader.error(WireErrorKind::GroupOpen)),
    }
}

/// Steps over a record that the type does not have; true if it was the end of the group.
#[inline(never)]
pub(super) fn skip(tag: u32, start: usize, reader: &mut Reader<'_>, end: End) -> Result<bool, WireError> {
    let tag = checked(tag, start)?;
    if tag.wire_type != WireType::EndGroup {
        return reader.skip(tag, GROUPS_MAX).map(|()| false);
    }
    match end {
        End::Group(number) if number == tag.number => Ok(true),
        _ => Err(WireError { offset: start, kind: WireErrorKind::EndGroup }),
    }
}

fn checked(tag: u32, offset: usize) -> Result<Tag, WireError> {
    Tag::from_bits(tag).map_err(|kind| WireError { offset, kind })
}

/// Groups in one another that are stepped over.
const GROUPS_MAX: usize = 100;

#[cold]
fn not_text(pool: &Pool, field: &Field) -> Stop {
    let data = &pool.fields[field.index as usize];
    let field = pool.full_name(data);
    PrintError::NotText { field }.into()
}
