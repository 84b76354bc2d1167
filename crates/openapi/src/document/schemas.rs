//! JSON Schemas of messages, enums and values, by ProtoJSON's rules.

use std::collections::BTreeMap;

use thalweg_protobuf::{EnumType, Field, Kind, MessageType, Oneof, WellKnown};

use super::json::{Json, Object};
use super::text;
use crate::info::Info;
use crate::options::{Behavior, Deprecated, resource};

/// Component name of the error schema.
const STATUS: &str = "google.rpc.Status";

/// Collects the referenced types as components, by full name.
pub(super) struct Schemas<'s> {
    info: &'s Info,
    done: BTreeMap<String, Object>,
    /// Messages that are referenced but not yet built.
    messages: Vec<MessageType<'s>>,
}

impl<'s> Schemas<'s> {
    pub(super) fn new(info: &'s Info) -> Self {
        Schemas { info, done: BTreeMap::new(), messages: Vec::new() }
    }

    /// Returns all components, sorted by name.
    pub(super) fn object(&mut self) -> Object {
        while let Some(message) = self.messages.pop() {
            let schema = self.message(message, &[]);
            self.done.insert(message.full_name().to_owned(), schema);
        }
        let done = std::mem::take(&mut self.done);
        done.into_iter().fold(Object::new(), |object, (name, schema)| object.with(name, schema))
    }

    /// Returns the schema of a field: a value, list or map.
    pub(super) fn of_field(&mut self, field: Field<'s>) -> Object {
        if let Some((_, value)) = field.map_entry() {
            let value = self.of_value(value);
            return Object::new().with("type", "object").with("additionalProperties", value);
        }
        let value = self.of_value(field);
        if field.is_repeated() { list_of(value) } else { value }
    }

    /// Returns the schema of one value.
    pub(super) fn of_value(&mut self, field: Field<'s>) -> Object {
        let of = |name: &'static str| Object::new().with("type", name);
        match field.kind() {
            Kind::Double => of("number").with("format", "double"),
            Kind::Float => of("number").with("format", "float"),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => of("integer").with("format", "int32"),
            Kind::Uint32 | Kind::Fixed32 => of("integer").with("format", "uint32").with("minimum", 0),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => of("string").with("format", "int64"),
            Kind::Uint64 | Kind::Fixed64 => of("string").with("format", "uint64"),
            Kind::Bool => of("boolean"),
            Kind::String => of("string"),
            Kind::Bytes => of("string").with("format", "byte").with("contentEncoding", "base64"),
            Kind::Enum => field.enum_type().map_or_else(Object::new, |kind| self.of_enum(kind)),
            Kind::Message | Kind::Group => {
                field.message_type().map_or_else(Object::new, |message| self.of_message(message))
            }
        }
    }

    /// Returns the schema of one value in a URL, where null does not occur.
    pub(super) fn of_text(&mut self, field: Field<'s>) -> Object {
        let wrapper = field.message_type().filter(|message| message.well_known() == Some(WellKnown::Wrapper));
        self.of_value(wrapper.and_then(|wrapper| wrapper.field_by_number(1)).unwrap_or(field))
    }

    pub(super) fn of_message(&mut self, message: MessageType<'s>) -> Object {
        if let Some(kind) = message.well_known() {
            return self.well_known(kind, message);
        }
        if !self.done.contains_key(message.full_name()) {
            // Inserted before it is built, because a message may contain itself.
            self.done.insert(message.full_name().to_owned(), Object::new());
            self.messages.push(message);
        }
        reference(message.full_name())
    }

    /// Returns the schema of a message without the fields of these numbers, which are elsewhere.
    pub(super) fn of_message_without(&mut self, message: MessageType<'s>, fields: &[u32]) -> Object {
        if fields.is_empty() || message.well_known().is_some() {
            return self.of_message(message);
        }
        self.message(message, fields)
    }

    /// Returns the schema of a message of which only some fields are given.
    pub(super) fn of_partial(&mut self, message: MessageType<'s>) -> Object {
        self.message(message, &[]).without("required")
    }

    /// Returns the schema of `google.rpc.Status`, which need not be in the protobuf schema.
    pub(super) fn of_status(&mut self) -> Object {
        let status = || {
            let of = |name: &'static str, description: &'static str| {
                Object::new().with("type", name).with("description", description)
            };
            let details = of("array", "Machine-readable details.").with("items", any());
            let properties = Object::new()
                .with("code", of("integer", "A `google.rpc.Code`.").with("format", "int32"))
                .with("message", of("string", "Message for developers."))
                .with("details", details);
            Object::new()
                .with("type", "object")
                .with("description", "Error of a call.")
                .with("properties", properties)
        };
        self.done.entry(STATUS.to_owned()).or_insert_with(status);
        reference(STATUS)
    }

    fn well_known(&mut self, kind: WellKnown, message: MessageType<'s>) -> Object {
        let of = |name: &'static str| Object::new().with("type", name);
        match kind {
            WellKnown::Any => any(),
            WellKnown::Timestamp => of("string").with("format", "date-time"),
            WellKnown::Duration => of("string")
                .with("pattern", r"^-?[0-9]+(\.[0-9]{1,9})?s$")
                .with("description", "Seconds with the suffix `s`, such as `1.5s`."),
            WellKnown::FieldMask => of("string")
                .with("description", "Field names separated by commas, such as `author.name,title`."),
            WellKnown::Struct => of("object").with("additionalProperties", true),
            WellKnown::Value => Object::new().with("description", "Any JSON."),
            WellKnown::ListValue => list_of(Object::new()),
            WellKnown::Empty => of("object"),
            WellKnown::Wrapper => {
                let value = message.field_by_number(1).map(|value| self.of_value(value));
                nullable(value.unwrap_or_default())
            }
        }
    }

    fn of_enum(&mut self, kind: EnumType<'s>) -> Object {
        if kind.full_name() == "google.protobuf.NullValue" {
            return Object::new().with("type", "null");
        }
        if !self.done.contains_key(kind.full_name()) {
            let schema = self.enumeration(kind);
            self.done.insert(kind.full_name().to_owned(), schema);
        }
        reference(kind.full_name())
    }

    fn enumeration(&self, kind: EnumType<'_>) -> Object {
        let mut description = self.comment(kind.full_name()).unwrap_or_default();
        let has_comment =
            |name: &str| self.info.comments.get(&format!("{}.{name}", kind.full_name())).is_some();
        if self.info.enum_numbers
            || kind.values().any(|value| has_comment(value.name()) || value.is_deprecated())
        {
            let lines: Vec<String> = kind.values().map(|value| self.value_line(kind, value)).collect();
            text::add_paragraph(&mut description, &lines.join("\n"));
        }
        let names = || kind.values().map(|value| value.name().to_owned()).collect::<Vec<String>>();
        let mut numbers: Vec<i64> = kind.values().map(|value| value.number().into()).collect();
        numbers.dedup();
        let schema = if self.info.enum_numbers {
            Object::new().with("type", "integer").with("enum", numbers)
        } else {
            Object::new().with("type", "string").with("enum", names())
        };
        schema
            .with_some("description", (!description.is_empty()).then_some(description))
            .with_some("deprecated", kind.is_deprecated().then_some(true))
    }

    fn value_line(&self, kind: EnumType<'_>, value: thalweg_protobuf::EnumValue<'_>) -> String {
        let comment = self.comment(&format!("{}.{}", kind.full_name(), value.name())).unwrap_or_default();
        let number = if self.info.enum_numbers { format!(" ({})", value.number()) } else { String::new() };
        let deprecated = if value.is_deprecated() { " Deprecated." } else { "" };
        let line = format!("- `{}`{number}: {}{deprecated}", value.name(), comment.replace('\n', " "));
        line.trim_end_matches([' ', ':']).to_owned()
    }

    fn message(&mut self, message: MessageType<'s>, without: &[u32]) -> Object {
        let (mut properties, mut required) = (Object::new(), Vec::new());
        for field in message.fields().filter(|field| !without.contains(&field.number())) {
            let name = self.info.name(field);
            if Behavior::of(field).is_required {
                required.push(name.to_owned());
            }
            let property = self.property(field);
            properties.set(name.to_owned(), property);
        }
        let mut description = self.comment(message.full_name()).unwrap_or_default();
        if let Some((kind, patterns)) = resource(message) {
            let patterns: Vec<String> = patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
            let named = if patterns.is_empty() {
                String::new()
            } else {
                format!(", named {}", patterns.join(" or "))
            };
            text::add_paragraph(&mut description, &format!("The resource `{kind}`{named}."));
        }
        let is_left = |field: Field<'_>| !without.contains(&field.number());
        let mut choices: Vec<Object> = message
            .oneofs()
            .filter(|oneof| oneof.fields().all(is_left) && oneof.fields().len() > 1)
            .map(|oneof| self.choice(oneof))
            .collect();
        let schema = Object::new()
            .with("type", "object")
            .with_some("description", (!description.is_empty()).then_some(description))
            .with_some("properties", properties.some())
            .with_some("required", (!required.is_empty()).then_some(required))
            .with_some("deprecated", message.is_deprecated().then_some(true));
        match choices.len() {
            0 => schema,
            1 => choices.remove(0).and(schema),
            _ => schema.with("allOf", choices),
        }
    }

    fn property(&mut self, field: Field<'s>) -> Object {
        let behavior = Behavior::of(field);
        let schema = self.of_field(field);
        let comment = self.comment(&field.full_name());
        // Without a comment, the type's description stays.
        let schema = match comment {
            Some(comment) => schema.with("description", comment),
            None => schema,
        };
        schema
            .with_some("deprecated", field.is_deprecated().then_some(true))
            .with_some("readOnly", behavior.is_output_only.then_some(true))
            .with_some("writeOnly", behavior.is_input_only.then_some(true))
    }

    /// Returns a schema that allows at most one member of the oneof.
    fn choice(&self, oneof: Oneof<'_>) -> Object {
        let required =
            |field: Field<'_>| Object::new().with("required", vec![self.info.name(field).to_owned()]);
        let members: Vec<Object> = oneof.fields().map(required).collect();
        let none = Object::new().with("not", Object::new().with("anyOf", members.clone()));
        let titled = oneof.fields().zip(members);
        let titled = titled.map(|(field, member)| member.with("title", self.info.name(field).to_owned()));
        let choices: Vec<Object> =
            titled.chain([none.with("title", format!("no {}", oneof.name()))]).collect();
        Object::new().with("oneOf", choices)
    }

    fn comment(&self, full_name: &str) -> Option<String> {
        self.info.comments.get(full_name).map(str::to_owned)
    }
}

pub(super) fn list_of(items: Object) -> Object {
    Object::new().with("type", "array").with("items", items)
}

fn any() -> Object {
    let kind = Object::new().with("type", "string").with("description", "Type URL of the message.");
    Object::new()
        .with("type", "object")
        .with("description", "A message of any type.")
        .with("properties", Object::new().with("@type", kind))
        .with("required", vec!["@type".to_owned()])
        .with("additionalProperties", true)
}

fn nullable(schema: Object) -> Object {
    match schema.get("type") {
        Some(Json::Text(kind)) => {
            let kinds = vec![Json::Text(kind.clone()), "null".into()];
            schema.with("type", Json::List(kinds))
        }
        _ => schema,
    }
}

fn reference(full_name: &str) -> Object {
    Object::new().with("$ref", format!("#/components/schemas/{full_name}"))
}
