//! Handles: a schema reference and an index. They are `Copy` and as cheap as references.

use std::fmt;

use super::features::Edition;
use super::kind::{Cardinality, Kind, WellKnown};
use super::pool::{
    EnumData, EnumValueData, FieldData, FileData, MessageData, MethodData, NONE, OneofData, ServiceData,
};
use super::raw::option;
use super::shared::Schema;
use super::table::{Entry, Flags, Table};

macro_rules! handle {
    ($(#[$about:meta])* $name:ident, $list:ident: $data:ty) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        pub struct $name<'s> {
            schema: &'s Schema,
            index: u32,
        }

        impl<'s> $name<'s> {
            pub(crate) fn new(schema: &'s Schema, index: u32) -> $name<'s> {
                $name { schema, index }
            }

            pub(super) fn get(self) -> &'s $data {
                &self.schema.pool().$list[self.index as usize]
            }

            /// Returns its schema.
            pub fn schema(self) -> &'s Schema {
                self.schema
            }

        }

        impl PartialEq for $name<'_> {
            fn eq(&self, other: &Self) -> bool {
                self.index == other.index && self.schema.is(other.schema)
            }
        }

        impl Eq for $name<'_> {}

        impl fmt::Debug for $name<'_> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({})", stringify!($name), self.get().name)
            }
        }
    };
}

handle!(
    /// A `.proto` file.
    File, files: FileData
);
handle!(
    /// A message: its name, fields, oneofs and extensions.
    MessageType, messages: MessageData
);
handle!(
    /// An enum.
    EnumType, enums: EnumData
);
handle!(
    /// A field of a message, or an extension.
    Field, fields: FieldData
);
handle!(
    /// A service.
    Service, services: ServiceData
);

impl<'s> File<'s> {
    /// Returns its name, as other files import it.
    pub fn name(self) -> &'s str {
        &self.get().name
    }

    /// Returns its package; empty if it has none.
    pub fn package(self) -> &'s str {
        &self.get().package
    }

    /// Returns its language.
    pub fn edition(self) -> Edition {
        self.get().edition
    }

    /// Returns the names of the files it imports.
    pub fn dependencies(self) -> impl ExactSizeIterator<Item = &'s str> {
        self.get().dependencies.iter().map(AsRef::as_ref)
    }

    /// Returns the encoded `google.protobuf.FileOptions`, including custom options.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }
}

/// Identifies a message of a schema without borrowing the schema. See
/// [`Schema::message_by_id`](super::Schema::message_by_id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(super) u32);

impl<'s> MessageType<'s> {
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Returns its id, valid in this schema and its clones.
    pub fn id(self) -> MessageId {
        MessageId(self.index)
    }

    /// Returns the last part of its full name.
    pub fn name(self) -> &'s str {
        last_part(self.full_name())
    }

    /// Returns its name with package and enclosing messages, without a leading dot.
    pub fn full_name(self) -> &'s str {
        &self.get().name
    }

    /// Returns the file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// Returns the message that declares it, if any.
    pub fn parent(self) -> Option<MessageType<'s>> {
        some(self.get().parent).map(|index| MessageType::new(self.schema, index))
    }

    /// Returns its fields in order of declaration, without extensions.
    pub fn fields(self) -> impl ExactSizeIterator<Item = Field<'s>> {
        self.get().fields.clone().map(move |index| Field::new(self.schema, index))
    }

    /// Returns its extensions, from all files of the schema.
    pub fn extensions(self) -> impl ExactSizeIterator<Item = Field<'s>> {
        self.get().extensions.iter().map(move |&index| Field::new(self.schema, index))
    }

    /// Returns the field with this name.
    pub fn field(self, name: &str) -> Option<Field<'s>> {
        self.schema.pool().field_named(self.index, name).map(|index| Field::new(self.schema, index))
    }

    /// Returns the field for a key of a JSON object: its JSON name or its own name.
    pub fn field_by_json_name(self, name: &str) -> Option<Field<'s>> {
        self.schema.pool().field_of_key(self.index, name).map(|index| Field::new(self.schema, index))
    }

    /// Returns the field or extension with this number.
    pub fn field_by_number(self, number: u32) -> Option<Field<'s>> {
        self.table().find(number).map(|(_, entry)| Field::new(self.schema, entry.field))
    }

    /// Returns its oneofs in order of declaration, without the synthetic ones of proto3's `optional`.
    pub fn oneofs(self) -> impl Iterator<Item = Oneof<'s>> {
        let oneofs = self.get().oneofs.iter().enumerate();
        oneofs
            .filter(|(_, oneof)| !oneof.synthetic)
            .map(move |(index, _)| Oneof { message: self, index: index as u32 })
    }

    /// Returns the oneof with this name.
    pub fn oneof(self, name: &str) -> Option<Oneof<'s>> {
        self.oneofs().find(|oneof| oneof.name() == name)
    }

    /// Whether the compiler generated it for a map field.
    pub fn is_map_entry(self) -> bool {
        self.get().map_entry
    }

    /// Returns the well-known type of this name, one with its own JSON form.
    pub fn well_known(self) -> Option<WellKnown> {
        WellKnown::of(self.full_name())
    }

    /// Whether the number is in one of its extension ranges.
    pub fn is_extension_number(self, number: u32) -> bool {
        self.get().extension_ranges.iter().any(|range| (range.start..range.end).contains(&number))
    }

    /// Whether the name is reserved, usually because a removed field had it.
    pub fn is_reserved_name(self, name: &str) -> bool {
        self.get().reserved_names.iter().any(|reserved| **reserved == *name)
    }

    /// Returns the encoded `google.protobuf.MessageOptions`, including custom options.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }

    #[inline]
    pub(crate) fn table(self) -> &'s Table {
        &self.schema.pool().tables[self.index as usize]
    }
}

impl<'s> Field<'s> {
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Returns its own name.
    pub fn name(self) -> &'s str {
        self.get().short_name()
    }

    /// Returns its name with the scope that declares it. For an extension, that is not the extended message.
    pub fn full_name(self) -> String {
        self.schema.pool().full_name(self.get())
    }

    /// Returns its key in a JSON object: `lowerCamelCase` or the declared `json_name`; for an extension `[full.name]`.
    pub fn json_name(self) -> &'s str {
        self.get().json_name.text()
    }

    /// Returns its field number.
    pub fn number(self) -> u32 {
        self.entry().number
    }

    /// Returns the type of its values.
    pub fn kind(self) -> Kind {
        self.entry().kind
    }

    /// Returns its cardinality.
    pub fn cardinality(self) -> Cardinality {
        self.entry().cardinality()
    }

    /// Whether it is repeated; true for maps.
    pub fn is_repeated(self) -> bool {
        self.entry().is_repeated()
    }

    /// Whether it is a map.
    pub fn is_map(self) -> bool {
        self.entry().is_map()
    }

    /// Whether it is repeated and not a map.
    pub fn is_list(self) -> bool {
        self.is_repeated() && !self.is_map()
    }

    /// Whether it is required.
    pub fn is_required(self) -> bool {
        self.entry().flags.has(Flags::REQUIRED)
    }

    /// Whether it tracks presence: if set to its default value, it is still written.
    pub fn has_presence(self) -> bool {
        self.entry().flags.has(Flags::EXPLICIT)
    }

    /// Whether it is written packed. Both forms are accepted when reading.
    pub fn is_packed(self) -> bool {
        self.entry().flags.has(Flags::PACKED)
    }

    /// Whether its strings must be UTF-8.
    pub fn requires_utf8(self) -> bool {
        self.entry().flags.has(Flags::UTF8)
    }

    /// Whether it is an extension.
    pub fn is_extension(self) -> bool {
        self.entry().flags.has(Flags::EXTENSION)
    }

    /// Returns the message that it belongs to or extends.
    pub fn message(self) -> MessageType<'s> {
        MessageType::new(self.schema, self.get().message)
    }

    /// Returns its oneof, unless that is a synthetic one of proto3's `optional`.
    pub fn oneof(self) -> Option<Oneof<'s>> {
        let oneof = Oneof { message: self.message(), index: some(self.get().oneof)? };
        (!oneof.get().synthetic).then_some(oneof)
    }

    /// Returns the type of its values if they are messages; for a map, the type of its entries.
    pub fn message_type(self) -> Option<MessageType<'s>> {
        let Entry { kind, type_index, .. } = *self.entry();
        kind.is_message().then(|| MessageType::new(self.schema, type_index))
    }

    /// Returns the type of its values if it is an enum.
    pub fn enum_type(self) -> Option<EnumType<'s>> {
        let Entry { kind, type_index, .. } = *self.entry();
        (kind == Kind::Enum).then(|| EnumType::new(self.schema, type_index))
    }

    /// Returns the key and value fields, if it is a map.
    pub fn map_entry(self) -> Option<(Field<'s>, Field<'s>)> {
        let entry = self.is_map().then(|| self.message_type()).flatten()?;
        Some((entry.field_by_number(1)?, entry.field_by_number(2)?))
    }

    /// Returns the file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// Returns the encoded `google.protobuf.FieldOptions`, including custom options.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }

    pub(crate) fn entry(self) -> &'s Entry {
        self.schema.pool().entry(self.get())
    }

    /// Returns its index in its message's table.
    pub(crate) fn entry_index(self) -> usize {
        usize::from(self.get().entry)
    }
}

impl<'s> EnumType<'s> {
    /// Returns the last part of its full name.
    pub fn name(self) -> &'s str {
        last_part(self.full_name())
    }

    /// Returns its name with package and enclosing messages.
    pub fn full_name(self) -> &'s str {
        &self.get().name
    }

    /// Returns the file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// Returns the message that declares it, if any.
    pub fn parent(self) -> Option<MessageType<'s>> {
        some(self.get().parent).map(|index| MessageType::new(self.schema, index))
    }

    /// Whether unknown numbers are unknown fields rather than values.
    pub fn is_closed(self) -> bool {
        self.get().closed
    }

    /// Returns its values in order of declaration; the first is the default.
    pub fn values(self) -> impl ExactSizeIterator<Item = EnumValue<'s>> {
        self.get().values.iter().map(|data| EnumValue { data })
    }

    /// Returns the value with this name.
    pub fn value(self, name: &str) -> Option<EnumValue<'s>> {
        self.get().value_named(name).map(|data| EnumValue { data })
    }

    /// Returns the value with this number; with aliases, the first.
    pub fn value_by_number(self, number: i32) -> Option<EnumValue<'s>> {
        self.get().value(number).map(|data| EnumValue { data })
    }

    /// Returns the encoded `google.protobuf.EnumOptions`.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }
}

/// A value of an enum.
#[derive(Clone, Copy, Debug)]
pub struct EnumValue<'s> {
    data: &'s EnumValueData,
}

impl<'s> EnumValue<'s> {
    /// Returns its name.
    pub fn name(self) -> &'s str {
        &self.data.name
    }

    /// Returns its number.
    pub fn number(self) -> i32 {
        self.data.number
    }

    /// Returns the encoded `google.protobuf.EnumValueOptions`.
    pub fn options(self) -> &'s [u8] {
        &self.data.options
    }
}

/// A oneof: a group of fields of which at most one is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Oneof<'s> {
    message: MessageType<'s>,
    index: u32,
}

impl<'s> Oneof<'s> {
    fn get(self) -> &'s OneofData {
        &self.message.get().oneofs[self.index as usize]
    }

    /// Returns its name.
    pub fn name(self) -> &'s str {
        &self.get().name
    }

    /// Returns the message that declares it.
    pub fn message(self) -> MessageType<'s> {
        self.message
    }

    /// Returns its members.
    pub fn fields(self) -> impl ExactSizeIterator<Item = Field<'s>> {
        self.get().fields.iter().map(move |&index| Field::new(self.message.schema, index))
    }
}

impl<'s> Service<'s> {
    /// Returns the last part of its full name.
    pub fn name(self) -> &'s str {
        last_part(self.full_name())
    }

    /// Returns its name with the package.
    pub fn full_name(self) -> &'s str {
        &self.get().name
    }

    /// Returns the file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// Returns its methods in order of declaration.
    pub fn methods(self) -> impl ExactSizeIterator<Item = Method<'s>> {
        (0..self.get().methods.len() as u32).map(move |index| Method { service: self, index })
    }

    /// Returns the method with this name.
    pub fn method(self, name: &str) -> Option<Method<'s>> {
        self.methods().find(|method| method.name() == name)
    }

    /// Returns the encoded `google.protobuf.ServiceOptions`.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }
}

/// A method of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Method<'s> {
    service: Service<'s>,
    index: u32,
}

impl<'s> Method<'s> {
    fn get(self) -> &'s MethodData {
        &self.service.get().methods[self.index as usize]
    }

    /// Returns its name.
    pub fn name(self) -> &'s str {
        &self.get().name
    }

    /// Returns the path of its calls: `/pkg.Service/Method`.
    pub fn path(self) -> String {
        format!("/{}/{}", self.service.full_name(), self.name())
    }

    /// Returns its service.
    pub fn service(self) -> Service<'s> {
        self.service
    }

    /// Returns the request type.
    pub fn input(self) -> MessageType<'s> {
        MessageType::new(self.service.schema, self.get().input)
    }

    /// Returns the response type.
    pub fn output(self) -> MessageType<'s> {
        MessageType::new(self.service.schema, self.get().output)
    }

    /// Whether the client sends a stream of messages.
    pub fn is_client_streaming(self) -> bool {
        self.get().client_streaming
    }

    /// Whether the server sends a stream of messages.
    pub fn is_server_streaming(self) -> bool {
        self.get().server_streaming
    }

    /// Whether it is free of side effects: `idempotency_level = NO_SIDE_EFFECTS`.
    pub fn has_no_side_effects(self) -> bool {
        const IDEMPOTENCY_LEVEL: u32 = 34;
        matches!(option(self.options(), IDEMPOTENCY_LEVEL), Ok(Some(1)))
    }

    /// Returns the encoded `google.protobuf.MethodOptions`, including custom options such as `google.api.http`.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }
}

fn some(index: u32) -> Option<u32> {
    (index != NONE).then_some(index)
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
