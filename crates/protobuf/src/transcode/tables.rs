//! What printing and building want to know of a schema, laid out for them.

use super::sink::Name;
use crate::schema::{
    Cardinality, EnumData, FieldData, Kind, MessageData, Names, Pool, Preset, Symbol, WellKnown,
};
use crate::wire::{Tag, WireType};

/// All message types of a schema, with the indexes that they have there.
#[derive(Debug)]
pub(crate) struct Tables {
    messages: Box<[Type]>,
    /// The two names in the form of an Any.
    pub(super) type_name: Name,
    pub(super) value_name: Name,
}

#[derive(Debug)]
pub(crate) struct Type {
    /// In the schema.
    pub(super) index: u32,
    /// Whether it has a form of its own.
    pub(super) known: Option<WellKnown>,
    /// As they are declared; extensions behind.
    pub(super) fields: Box<[Field]>,
    pub(super) is_message_set: bool,
    /// Indexes of fields that must be there.
    pub(super) required: Box<[u16]>,
    numbers: Numbers,
    /// From JSON's names and the schema's to indexes.
    names: Names<u16>,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "what a field is has nothing to do with what else it is")]
pub(crate) struct Field {
    /// In the schema.
    pub(super) index: u32,
    pub(super) number: u32,
    /// The tag of its records as they are written, as the number that is on the wire.
    pub(super) tag: u32,
    /// Of packed numbers the tag of single ones, and the other way round; 0 if there is no other.
    pub(super) other_tag: u32,
    /// Groups are messages here: their tag tells.
    pub(super) kind: Kind,
    pub(super) shape: Shape,
    /// Singular, and not there when it is zero.
    pub(super) is_implicit: bool,
    pub(super) is_in_oneof: bool,
    /// An enum to which no other numbers belong.
    pub(super) is_closed: bool,
    pub(super) is_extension: bool,
    pub(super) is_required: bool,
    /// Its bit in a set of fields; members of a oneof share one.
    pub(super) seen: u16,
    /// The index of the message type or enum, of those that have one.
    type_index: u32,
    /// What an enum is when nothing is said.
    pub(super) default_number: u64,
    pub(super) json_name: Name,
    pub(super) schema_name: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Singular,
    Repeated,
    Map,
}

const NO_FIELD: u16 = u16::MAX;
/// Numbers below this are looked up by index.
const LOW_NUMBERS: usize = 1024;

// The numbers of the fields of `google.protobuf.Value`.
pub(super) const VALUE_NULL: u32 = 1;
pub(super) const VALUE_NUMBER: u32 = 2;
pub(super) const VALUE_STRING: u32 = 3;
pub(super) const VALUE_BOOL: u32 = 4;
pub(super) const VALUE_STRUCT: u32 = 5;
pub(super) const VALUE_LIST: u32 = 6;

impl Tables {
    pub(crate) fn new(pool: &Pool) -> Tables {
        let messages = (0..).zip(&pool.messages).map(|(index, message)| Type::new(pool, index, message));
        Tables { messages: messages.collect(), type_name: Name::new("@type"), value_name: Name::new("value") }
    }

    #[inline]
    pub(super) fn message(&self, index: usize) -> &Type {
        &self.messages[index]
    }
}

/// The type that an Any names: behind the last slash, of which there must be one.
pub(super) fn named(pool: &Pool, type_url: &str) -> Option<usize> {
    let (_, name) = type_url.rsplit_once('/')?;
    match pool.names.get(name)? {
        Symbol::Message(index) => Some(*index as usize),
        _ => None,
    }
}

impl Type {
    fn new(pool: &Pool, index: u32, message: &MessageData) -> Type {
        let own = message.fields.clone();
        let mut oneofs = vec![None; message.oneofs.len()];
        let mut fields = Vec::new();
        for (bit, field) in (0..NO_FIELD).zip(own.chain(message.extensions.iter().copied())) {
            let data = &pool.fields[field as usize];
            let mut made = Field::new(pool, field, data);
            made.seen = bit;
            let oneof = message.oneofs.get(data.oneof as usize).filter(|oneof| !oneof.synthetic);
            if oneof.is_some() {
                made.seen = *oneofs[data.oneof as usize].get_or_insert(bit);
                made.is_in_oneof = true;
            }
            fields.push(made);
        }
        let mut names = Names::default();
        for (index, field) in (0..NO_FIELD).zip(&fields) {
            names.insert(field.json_name.text.clone(), index);
        }
        for (index, field) in (0..NO_FIELD).zip(&fields) {
            // Where it is the JSON name of another field, that one counts.
            names.entry(field.schema_name.text.clone()).or_insert(index);
        }
        Type {
            index,
            known: message.well_known.filter(|known| is_as_known(*known, &fields, pool)),
            is_message_set: message.message_set,
            required: (0..NO_FIELD)
                .zip(&fields)
                .filter(|(_, field)| field.is_required)
                .map(|(index, _)| index)
                .collect(),
            numbers: Numbers::of(&fields),
            fields: fields.into(),
            names,
        }
    }

    /// The field that a tag, as it is on the wire, belongs to.
    #[inline]
    pub(super) fn field_of_tag(&self, tag: u32) -> Option<&Field> {
        let field = self.field_of_number(tag >> 3)?;
        (field.tag == tag || field.other_tag == tag).then_some(field)
    }

    #[inline]
    pub(super) fn field_of_number(&self, number: u32) -> Option<&Field> {
        self.fields.get(usize::from(self.numbers.index(number)))
    }

    #[inline]
    pub(super) fn index_of_name(&self, name: &str) -> Option<usize> {
        self.names.get(name).map(|&index| index.into())
    }
}

impl Field {
    fn new(pool: &Pool, index: u32, data: &FieldData) -> Field {
        let is_repeated = data.cardinality == Cardinality::Repeated;
        let single = Tag::new(data.number, data.kind.wire_type()).bits();
        let packed = Tag::new(data.number, WireType::Len).bits();
        let (tag, other_tag) = if data.packed {
            (packed, single)
        } else if is_repeated && data.kind.is_packable() {
            (single, packed)
        } else {
            (single, 0)
        };
        let (json_name, schema_name) = if data.extension {
            let name = format!("[{}]", data.name);
            (Name::new(&name), Name::new(&name))
        } else {
            (Name::new(&data.json_name), Name::new(&data.name))
        };
        let shape = match (data.map, is_repeated) {
            (true, _) => Shape::Map,
            (false, true) => Shape::Repeated,
            (false, false) => Shape::Singular,
        };
        Field {
            index,
            number: data.number,
            tag,
            other_tag,
            kind: if data.kind.is_message() { Kind::Message } else { data.kind },
            shape,
            is_implicit: shape == Shape::Singular && !data.explicit && !data.kind.is_message(),
            is_in_oneof: false,
            is_closed: data.kind == Kind::Enum && pool.enums[data.type_index as usize].closed,
            is_extension: data.extension,
            is_required: data.cardinality == Cardinality::Required,
            seen: 0,
            type_index: data.type_index,
            default_number: match (data.kind, &data.default) {
                (Kind::Enum, Preset::Word(word)) => i64::from(*word as i32) as u64,
                _ => 0,
            },
            json_name,
            schema_name,
        }
    }

    /// Of its message type or enum.
    #[inline]
    pub(super) fn target(&self) -> usize {
        self.type_index as usize
    }

    #[inline]
    pub(super) fn enumeration<'p>(&self, pool: &'p Pool) -> &'p EnumData {
        &pool.enums[self.target()]
    }

    #[inline]
    pub(super) fn is_group(&self) -> bool {
        self.tag & 7 == WireType::StartGroup as u32
    }

    #[inline]
    pub(super) fn is_packed(&self) -> bool {
        self.tag & 7 == WireType::Len as u32 && self.kind.is_packable()
    }
}

/// Whether an enum is the one whose only value JSON writes as null.
#[inline]
pub(super) fn is_null(enumeration: &EnumData) -> bool {
    *enumeration.name == *"google.protobuf.NullValue"
}

/// Whether a type of a well-known name has the fields that the name promises: a schema may come from anybody.
fn is_as_known(known: WellKnown, fields: &[Field], pool: &Pool) -> bool {
    let is = |index: usize, number, kind, shape| {
        let field: Option<&Field> = fields.get(index);
        field.is_some_and(|field| field.number == number && field.kind == kind && field.shape == shape)
    };
    let holds = |index: usize, name: &str| {
        let message = fields.get(index).and_then(|field| pool.messages.get(field.target()));
        message.is_some_and(|message| *message.name == *name)
    };
    let is_one = |number, kind| is(0, number, kind, Shape::Singular);
    match known {
        // Nothing is special about it.
        WellKnown::Empty => false,
        WellKnown::Any => {
            fields.len() == 2 && is_one(1, Kind::String) && is(1, 2, Kind::Bytes, Shape::Singular)
        }
        WellKnown::Timestamp | WellKnown::Duration => {
            fields.len() == 2 && is_one(1, Kind::Int64) && is(1, 2, Kind::Int32, Shape::Singular)
        }
        WellKnown::FieldMask => fields.len() == 1 && is(0, 1, Kind::String, Shape::Repeated),
        WellKnown::Struct => {
            let entry = fields.first().and_then(|field| pool.messages.get(field.target()));
            let value =
                entry.and_then(|entry| entry.fields.clone().nth(1)).map(|field| &pool.fields[field as usize]);
            let holds_values = value.is_some_and(|value| {
                value.kind == Kind::Message
                    && *pool.messages[value.type_index as usize].name == *"google.protobuf.Value"
            });
            fields.len() == 1 && is(0, 1, Kind::Message, Shape::Map) && holds_values
        }
        WellKnown::ListValue => {
            fields.len() == 1
                && is(0, 1, Kind::Message, Shape::Repeated)
                && holds(0, "google.protobuf.Value")
                && !fields[0].is_group()
        }
        WellKnown::Value => {
            use Kind::{Bool, Double, Enum, Message, String};
            let kinds = [Enum, Double, String, Bool, Message, Message];
            let is_kind = |(index, kind)| is(index, index as u32 + 1, kind, Shape::Singular);
            fields.len() == kinds.len()
                && (0..).zip(kinds).all(is_kind)
                && fields.iter().all(|field| field.is_in_oneof && !field.is_group())
                && holds(4, "google.protobuf.Struct")
                && holds(5, "google.protobuf.ListValue")
                && is_null(fields[0].enumeration(pool))
        }
        WellKnown::Wrapper => {
            fields.len() == 1
                && fields[0].shape == Shape::Singular
                && !matches!(fields[0].kind, Kind::Message | Kind::Enum)
        }
    }
}

/// Which field has which number.
#[derive(Debug)]
struct Numbers {
    /// By number: the index of the field, or `NO_FIELD`.
    low: Box<[u16]>,
    /// Numbers that are higher, in ascending order.
    high: Box<[(u32, u16)]>,
}

impl Numbers {
    fn of(fields: &[Field]) -> Numbers {
        let numbers = fields.iter().map(|field| field.number as usize);
        let low_max = numbers.filter(|number| *number < LOW_NUMBERS).max();
        let mut low = vec![NO_FIELD; low_max.map_or(0, |max| max + 1)];
        let mut high = Vec::new();
        for (index, field) in (0..NO_FIELD).zip(fields) {
            match low.get_mut(field.number as usize) {
                Some(slot) => *slot = index,
                None => high.push((field.number, index)),
            }
        }
        high.sort_unstable();
        Numbers { low: low.into(), high: high.into() }
    }

    #[inline]
    fn index(&self, number: u32) -> u16 {
        match self.low.get(number as usize) {
            Some(index) => *index,
            None => self.high_index(number),
        }
    }

    #[cold]
    fn high_index(&self, number: u32) -> u16 {
        let position = self.high.binary_search_by_key(&number, |(number, _)| *number);
        position.map_or(NO_FIELD, |position| self.high[position].1)
    }
}
