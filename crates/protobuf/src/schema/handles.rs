//! Handles: a reference to the schema and an index. They are `Copy`, and as good as references.

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

            /// The schema that it belongs to.
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
    /// As other files import it.
    pub fn name(self) -> &'s str {
        &self.get().name
    }

    /// The package; empty if there is none.
    pub fn package(self) -> &'s str {
        &self.get().package
    }

    /// The language.
    pub fn edition(self) -> Edition {
        self.get().edition
    }

    /// The names of the files that it imports.
    pub fn dependencies(self) -> impl ExactSizeIterator<Item = &'s str> {
        self.get().dependencies.iter().map(AsRef::as_ref)
    }

    /// A `google.protobuf.FileOptions`, encoded, with the custom ones.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }
}

/// Which message of its schema it is: for who keeps it without the schema. See
/// [`Schema::message_by_id`](super::Schema::message_by_id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(super) u32);

impl<'s> MessageType<'s> {
    pub(crate) fn index(self) -> u32 {
        self.index
    }

    /// Which it is: within this schema, and its clones.
    pub fn id(self) -> MessageId {
        MessageId(self.index)
    }

    /// The last part of the full name.
    pub fn name(self) -> &'s str {
        last_part(self.full_name())
    }

    /// With the package and the messages around it, without a dot in front.
    pub fn full_name(self) -> &'s str {
        &self.get().name
    }

    /// The file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// The message that it is declared in.
    pub fn parent(self) -> Option<MessageType<'s>> {
        some(self.get().parent).map(|index| MessageType::new(self.schema, index))
    }

    /// Fields as they are declared, without extensions.
    pub fn fields(self) -> impl ExactSizeIterator<Item = Field<'s>> {
        self.get().fields.clone().map(move |index| Field::new(self.schema, index))
    }

    /// Extensions of it, wherever in the schema they are declared.
    pub fn extensions(self) -> impl ExactSizeIterator<Item = Field<'s>> {
        self.get().extensions.iter().map(move |&index| Field::new(self.schema, index))
    }

    /// The field with this name.
    pub fn field(self, name: &str) -> Option<Field<'s>> {
        self.schema.pool().field_named(self.index, name).map(|index| Field::new(self.schema, index))
    }

    /// The field that a JSON object means: by its JSON name, or by its own.
    pub fn field_by_json_name(self, name: &str) -> Option<Field<'s>> {
        self.schema.pool().field_of_key(self.index, name).map(|index| Field::new(self.schema, index))
    }

    /// The field or extension with this number.
    pub fn field_by_number(self, number: u32) -> Option<Field<'s>> {
        self.table().find(number).map(|(_, entry)| Field::new(self.schema, entry.field))
    }

    /// Oneofs as they are declared, without those that stand for proto3's `optional`.
    pub fn oneofs(self) -> impl Iterator<Item = Oneof<'s>> {
        let oneofs = self.get().oneofs.iter().enumerate();
        oneofs
            .filter(|(_, oneof)| !oneof.synthetic)
            .map(move |(index, _)| Oneof { message: self, index: index as u32 })
    }

    /// The oneof with this name.
    pub fn oneof(self, name: &str) -> Option<Oneof<'s>> {
        self.oneofs().find(|oneof| oneof.name() == name)
    }

    /// Whether it was made by the compiler for a map field.
    pub fn is_map_entry(self) -> bool {
        self.get().map_entry
    }

    /// Whether it is, by its name, one of those that have a form of their own in JSON.
    pub fn well_known(self) -> Option<WellKnown> {
        WellKnown::of(self.full_name())
    }

    /// Whether extensions may have this number.
    pub fn is_extension_number(self, number: u32) -> bool {
        self.get().extension_ranges.iter().any(|range| (range.start..range.end).contains(&number))
    }

    /// Whether no field may have this name: mostly, one had it once.
    pub fn is_reserved_name(self, name: &str) -> bool {
        self.get().reserved_names.iter().any(|reserved| **reserved == *name)
    }

    /// A `google.protobuf.MessageOptions`, encoded, with the custom ones.
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

    /// Its own name.
    pub fn name(self) -> &'s str {
        self.get().own_name()
    }

    /// With what it is declared in; an extension is declared elsewhere than in the message that it extends.
    pub fn full_name(self) -> String {
        self.schema.pool().full_name(self.get())
    }

    /// The key in a JSON object: `lowerCamelCase`, or what the file says; of an extension `[full.name]`.
    pub fn json_name(self) -> &'s str {
        self.get().json_name.text()
    }

    /// Its number on the wire.
    pub fn number(self) -> u32 {
        self.entry().number
    }

    /// The type of its values.
    pub fn kind(self) -> Kind {
        self.entry().kind
    }

    /// How many values it has.
    pub fn cardinality(self) -> Cardinality {
        self.entry().cardinality()
    }

    /// Whether it is repeated; maps are.
    pub fn is_repeated(self) -> bool {
        self.entry().is_repeated()
    }

    /// Whether it is a map.
    pub fn is_map(self) -> bool {
        self.entry().is_map()
    }

    /// Whether it is repeated, and no map.
    pub fn is_list(self) -> bool {
        self.is_repeated() && !self.is_map()
    }

    /// Whether it is required.
    pub fn is_required(self) -> bool {
        self.entry().flags.has(Flags::REQUIRED)
    }

    /// Whether it knows that it was set: one with the default value is written all the same.
    pub fn has_presence(self) -> bool {
        self.entry().flags.has(Flags::EXPLICIT)
    }

    /// Whether it is written packed. What is read may be either.
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

    /// The message that it belongs to, or extends.
    pub fn message(self) -> MessageType<'s> {
        MessageType::new(self.schema, self.get().message)
    }

    /// The oneof that it is a member of, if that is not one made for proto3's `optional`.
    pub fn oneof(self) -> Option<Oneof<'s>> {
        let oneof = Oneof { message: self.message(), index: some(self.get().oneof)? };
        (!oneof.get().synthetic).then_some(oneof)
    }

    /// The type of its values if they are messages; for a map that of its entries.
    pub fn message_type(self) -> Option<MessageType<'s>> {
        let Entry { kind, type_index, .. } = *self.entry();
        kind.is_message().then(|| MessageType::new(self.schema, type_index))
    }

    /// The type of its values if they are of an enum.
    pub fn enum_type(self) -> Option<EnumType<'s>> {
        let Entry { kind, type_index, .. } = *self.entry();
        (kind == Kind::Enum).then(|| EnumType::new(self.schema, type_index))
    }

    /// Key and value, if it is a map.
    pub fn map_entry(self) -> Option<(Field<'s>, Field<'s>)> {
        let entry = self.is_map().then(|| self.message_type()).flatten()?;
        Some((entry.field_by_number(1)?, entry.field_by_number(2)?))
    }

    /// The file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// A `google.protobuf.FieldOptions`, encoded, with the custom ones.
    pub fn options(self) -> &'s [u8] {
        &self.get().options
    }

    pub(crate) fn entry(self) -> &'s Entry {
        self.schema.pool().entry(self.get())
    }

    /// Its index in its message's table.
    pub(crate) fn entry_index(self) -> usize {
        usize::from(self.get().entry)
    }
}

impl<'s> EnumType<'s> {
    /// The last part of the full name.
    pub fn name(self) -> &'s str {
        last_part(self.full_name())
    }

    /// With the package and the messages around it.
    pub fn full_name(self) -> &'s str {
        &self.get().name
    }

    /// The file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// The message that it is declared in.
    pub fn parent(self) -> Option<MessageType<'s>> {
        some(self.get().parent).map(|index| MessageType::new(self.schema, index))
    }

    /// Whether numbers without a name are unknown fields, not values.
    pub fn is_closed(self) -> bool {
        self.get().closed
    }

    /// Values as they are declared; the first is the default.
    pub fn values(self) -> impl ExactSizeIterator<Item = EnumValue<'s>> {
        self.get().values.iter().map(|data| EnumValue { data })
    }

    /// The value with this name.
    pub fn value(self, name: &str) -> Option<EnumValue<'s>> {
        self.get().value_named(name).map(|data| EnumValue { data })
    }

    /// The value with this number; the first of them, if there are aliases.
    pub fn value_by_number(self, number: i32) -> Option<EnumValue<'s>> {
        self.get().value(number).map(|data| EnumValue { data })
    }

    /// A `google.protobuf.EnumOptions`, encoded.
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
    /// Its own name.
    pub fn name(self) -> &'s str {
        &self.data.name
    }

    /// Its number.
    pub fn number(self) -> i32 {
        self.data.number
    }

    /// A `google.protobuf.EnumValueOptions`, encoded.
    pub fn options(self) -> &'s [u8] {
        &self.data.options
    }
}

/// Fields of which at most one is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Oneof<'s> {
    message: MessageType<'s>,
    index: u32,
}

impl<'s> Oneof<'s> {
    fn get(self) -> &'s OneofData {
        &self.message.get().oneofs[self.index as usize]
    }

    /// Its own name.
    pub fn name(self) -> &'s str {
        &self.get().name
    }

    /// The message that it is in.
    pub fn message(self) -> MessageType<'s> {
        self.message
    }

    /// Its members.
    pub fn fields(self) -> impl ExactSizeIterator<Item = Field<'s>> {
        self.get().fields.iter().map(move |&index| Field::new(self.message.schema, index))
    }
}

impl<'s> Service<'s> {
    /// The last part of the full name.
    pub fn name(self) -> &'s str {
        last_part(self.full_name())
    }

    /// With the package.
    pub fn full_name(self) -> &'s str {
        &self.get().name
    }

    /// The file that declares it.
    pub fn file(self) -> File<'s> {
        File::new(self.schema, self.get().file)
    }

    /// Methods as they are declared.
    pub fn methods(self) -> impl ExactSizeIterator<Item = Method<'s>> {
        (0..self.get().methods.len() as u32).map(move |index| Method { service: self, index })
    }

    /// The method with this name.
    pub fn method(self, name: &str) -> Option<Method<'s>> {
        self.methods().find(|method| method.name() == name)
    }

    /// A `google.protobuf.ServiceOptions`, encoded.
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

    /// Its own name.
    pub fn name(self) -> &'s str {
        &self.get().name
    }

    /// The path of its calls: `/pkg.Service/Method`.
    pub fn path(self) -> String {
        format!("/{}/{}", self.service.full_name(), self.name())
    }

    /// The service that it belongs to.
    pub fn service(self) -> Service<'s> {
        self.service
    }

    /// What a client sends.
    pub fn input(self) -> MessageType<'s> {
        MessageType::new(self.service.schema, self.get().input)
    }

    /// What the server answers.
    pub fn output(self) -> MessageType<'s> {
        MessageType::new(self.service.schema, self.get().output)
    }

    /// Whether a client sends any number of messages.
    pub fn is_client_streaming(self) -> bool {
        self.get().client_streaming
    }

    /// Whether the server answers with any number of messages.
    pub fn is_server_streaming(self) -> bool {
        self.get().server_streaming
    }

    /// Returns whether calling it changes nothing: `idempotency_level = NO_SIDE_EFFECTS`.
    pub fn has_no_side_effects(self) -> bool {
        const IDEMPOTENCY_LEVEL: u32 = 34;
        matches!(option(self.options(), IDEMPOTENCY_LEVEL), Ok(Some(1)))
    }

    /// A `google.protobuf.MethodOptions`, encoded, with the custom ones such as `google.api.http`.
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
