//! Fields, maps and groups.

use std::rc::Rc;

use super::path::{file, message};
use super::{Parsed, Parser};
use crate::sources::error::Position;
use crate::sources::features::Features;
use crate::sources::lex::Token;
use crate::sources::literal;
use crate::sources::locations::LocationId;
use crate::sources::option_value::OptionMessage;
use crate::sources::pool::{
    Edition, Field, FieldId, FieldPositions, Kind, Label, MessageId, OptionSet, TypeRef,
};

/// What is known of a field before it is parsed.
pub(super) struct FieldStart {
    /// The message that it is declared in.
    pub(super) parent: Option<MessageId>,
    pub(super) extendee: Option<(Rc<str>, Position)>,
    pub(super) oneof: Option<u32>,
}

/// The type of a field as written.
enum WrittenType {
    Scalar(Kind),
    Named(Rc<str>),
}

struct MapType {
    key: WrittenType,
    value: WrittenType,
}

/// Field numbers of `FieldDescriptorProto`.
mod path {
    pub(super) const NUMBER: i32 = 3;
    pub(super) const TYPE: i32 = 5;
    pub(super) const TYPE_NAME: i32 = 6;
    pub(super) const DEFAULT_VALUE: i32 = 7;
    pub(super) const OPTIONS: i32 = 8;
    pub(super) const JSON_NAME: i32 = 10;
}

impl Parser<'_, '_> {
    pub(super) fn field(&mut self, start: &FieldStart, location: LocationId) -> Parsed {
        let field = self.add_field(start);
        let mut label = None;
        if start.oneof.is_some() {
            label = Some(Label::Optional);
        } else if let Some(written) = self.label()? {
            label = Some(written);
            self.pool[field].is_proto3_optional =
                written == Label::Optional && self.edition == Edition::PROTO3;
        }
        let map = self.field_type(field, start, label)?;
        let name_token = self.lexer.current;
        let (name, name_at) = self.name("a field name")?;
        let declared = &mut self.pool[field];
        (declared.name, declared.at.name) = (name, name_at);
        if !self.eat(b"=") {
            return self.fail(format!("expected \"=\" and a field number, found {}", self.found()));
        }
        self.pool[field].at.number = self.lexer.current.position();
        let number = self.located(&[path::NUMBER], |parser, _| parser.integer("a field number"))?;
        self.pool[field].number = number;
        self.field_options(field)?;
        if self.pool[field].kind == Some(Kind::Group) {
            self.group(field, start, name_token, location)?;
        } else {
            self.end_declaration(b";", Some(location))?;
        }
        if let Some(map) = map {
            self.add_map_entry(field, start.parent, map);
        }
        Ok(())
    }

    fn add_field(&mut self, start: &FieldStart) -> FieldId {
        let &FieldStart { parent, ref extendee, oneof } = start;
        let (extendee, extendee_at) = extendee.clone().unzip();
        let is_extension = extendee.is_some();
        let field = self.pool.add_field(Field {
            name: "".into(),
            file: self.file,
            parent,
            number: 0,
            label: Label::Optional,
            kind: None,
            type_name: "".into(),
            type_ref: TypeRef::None,
            extendee,
            message: parent.filter(|_| !is_extension),
            default: None,
            json_name: None,
            oneof,
            is_proto3_optional: false,
            options: None,
            features: Features::default(),
            at: FieldPositions { extendee: extendee_at.unwrap_or_default(), ..FieldPositions::default() },
        });
        match parent {
            Some(parent) if is_extension => self.pool[parent].extensions.push(field),
            Some(parent) => self.pool[parent].fields.push(field),
            None => self.pool[self.file].extensions.push(field),
        }
        field
    }

    fn field_type(
        &mut self,
        field: FieldId,
        start: &FieldStart,
        label: Option<Label>,
    ) -> Parsed<Option<MapType>> {
        self.pool[field].at.kind = self.lexer.current.position();
        let location = self.open(&[]);
        let map_token = self.at(b"map");
        let mut written = None;
        if map_token {
            self.lexer.next();
            if self.at(b"<") {
                let map = self.map_type(start, label)?;
                self.locations.extend_path(location, path::TYPE_NAME);
                self.close(location);
                self.pool[field].label = Label::Repeated;
                return Ok(Some(map));
            }
            // A message that is called "map".
            written = Some(WrittenType::Named("map".into()));
        }
        let label = match label {
            Some(label) => label,
            None if self.edition != Edition::PROTO2 => Label::Optional,
            None => {
                self.error("expected \"required\", \"optional\" or \"repeated\" before the type");
                Label::Optional
            }
        };
        self.pool[field].label = label;
        let written = match written {
            Some(written) => written,
            None => self.written_type()?,
        };
        let number = match written {
            WrittenType::Scalar(kind) => {
                self.pool[field].kind = Some(kind);
                path::TYPE
            }
            WrittenType::Named(name) => {
                self.pool[field].type_name = name;
                path::TYPE_NAME
            }
        };
        self.locations.extend_path(location, number);
        self.close(location);
        Ok(None)
    }

    fn map_type(&mut self, start: &FieldStart, label: Option<Label>) -> Parsed<MapType> {
        let wrong = if start.oneof.is_some() {
            "a map cannot be in a oneof"
        } else if label.is_some() {
            "a map has no label: remove it"
        } else if start.extendee.is_some() {
            "a map cannot be an extension"
        } else {
            self.expect(b"<")?;
            let key = self.written_type()?;
            self.expect(b",")?;
            let value = self.written_type()?;
            self.expect(b">")?;
            return Ok(MapType { key, value });
        };
        self.fail(wrong.to_owned())
    }

    fn written_type(&mut self) -> Parsed<WrittenType> {
        let Some(kind) = Kind::from_keyword(self.text()) else {
            return self.type_name().map(WrittenType::Named);
        };
        if kind == Kind::Group && !self.edition.is_legacy() {
            self.error(
                "editions have no groups: use features.message_encoding = DELIMITED on a message field",
            );
        }
        self.lexer.next();
        Ok(WrittenType::Scalar(kind))
    }

    /// The name of a message or enum, which may begin with a dot.
    pub(super) fn type_name(&mut self) -> Parsed<Rc<str>> {
        if Kind::from_keyword(self.text()).is_some() {
            self.error(format!("expected a message type, found {}", self.found()));
            let name = String::from_utf8_lossy(self.text()).into();
            self.lexer.next();
            return Ok(name);
        }
        let mut name = String::new();
        if self.eat(b".") {
            name.push('.');
        }
        name.push_str(&self.identifier("a type name")?);
        while self.eat(b".") {
            name.push('.');
            name.push_str(&self.identifier("an identifier")?);
        }
        Ok(name.into())
    }

    /// A group is a field and a message at once, so that their locations overlap.
    fn group(
        &mut self,
        field: FieldId,
        start: &FieldStart,
        name_token: Token,
        location: LocationId,
    ) -> Parsed {
        let index = self.messages_of(start.parent).len() as i32;
        let number = if start.parent.is_some() { message::MESSAGE } else { file::MESSAGE };
        // The path of the field, or of the extension, ends with two parts.
        let field_path = self.path.split_off(self.path.len() - 2);
        let parsed = self.located(&[number, index], |parser, group_location| {
            let begin = parser.locations.start_of(location);
            parser.locations.set_start(group_location, begin);
            let group = parser.add_message(start.parent);
            let name = parser.pool[field].name.clone();
            let declared = &mut parser.pool[group];
            (declared.name, declared.name_at) = (name.clone(), name_token.position());
            let named = parser.open(&[super::path::NAME]);
            parser.locations.start_at(named, name_token);
            parser.locations.close(named, name_token);
            let typed = parser.locations.open(
                parser.locations.path_of(location).to_vec().as_slice(),
                &[path::TYPE_NAME],
                name_token,
            );
            parser.locations.close(typed, name_token);
            if !name.starts_with(|c: char| c.is_ascii_uppercase()) {
                parser.error_at(name_token.position(), "group names must begin with a capital letter");
            }
            let declared = &mut parser.pool[field];
            declared.name = name.to_ascii_lowercase().into();
            declared.type_name = name;
            if !parser.at(b"{") {
                return parser
                    .fail(format!("expected \"{{\" and the group's fields, found {}", parser.found()));
            }
            parser.nested(|parser| parser.message_block(group, group_location))
        });
        self.path.extend(field_path);
        parsed
    }

    /// The message of a map's entries.
    fn add_map_entry(&mut self, map: FieldId, parent: Option<MessageId>, MapType { key, value }: MapType) {
        let name: Rc<str> = map_entry_name(&self.pool[map].name).into();
        self.pool[map].type_name = name.clone();
        let entry = self.add_message(parent);
        let name_at = self.pool[map].at.name;
        let declared = &mut self.pool[entry];
        (declared.name, declared.name_at, declared.is_map_entry) = (name, name_at, true);
        for (number, name, written) in [(1, "key", key), (2, "value", value)] {
            let start = FieldStart { parent: Some(entry), extendee: None, oneof: None };
            let field = self.add_field(&start);
            let options = self.map_entry_options(map, &written);
            let declared = &mut self.pool[field];
            (declared.name, declared.number, declared.options) = (name.into(), number, options);
            match written {
                WrittenType::Scalar(kind) => declared.kind = Some(kind),
                WrittenType::Named(name) => declared.type_name = name,
            }
        }
    }

    /// Features of a map are those of its keys and values, too.
    fn map_entry_options(&self, map: FieldId, written: &WrittenType) -> Option<Box<OptionSet>> {
        let is_string = matches!(written, WrittenType::Scalar(Kind::String));
        let written = &self.pool[map].options.as_deref()?.uninterpreted;
        let is_copied = |option: &&crate::sources::pool::Uninterpreted| {
            let first = &option.name[0];
            let is_utf8 = option.name.len() == 1 && *first.name == *"enforce_utf8" && is_string;
            !first.is_extension && (*first.name == *"features" || is_utf8)
        };
        let mut copied: Vec<_> = written.iter().filter(is_copied).cloned().collect();
        for option in &mut copied {
            option.locations = 0..0;
        }
        let options = OptionSet {
            uninterpreted: copied,
            value: OptionMessage::default(),
            explicit: Features::default(),
        };
        (!options.uninterpreted.is_empty()).then(|| Box::new(options))
    }

    fn field_options(&mut self, field: FieldId) -> Parsed {
        if !self.at(b"[") {
            return Ok(());
        }
        let location = self.open(&[path::OPTIONS]);
        self.expect(b"[")?;
        loop {
            if self.at(b"default") {
                self.default_value(field)?;
            } else if self.at(b"json_name") {
                self.json_name(field)?;
            } else {
                let mut options = self.pool[field].options.take();
                self.path.push(path::OPTIONS);
                let parsed = self.option(&mut options);
                self.path.pop();
                self.pool[field].options = options;
                parsed?;
            }
            if !self.eat(b",") {
                break;
            }
        }
        self.expect(b"]")?;
        self.close(location);
        Ok(())
    }

    fn json_name(&mut self, field: FieldId) -> Parsed {
        if self.pool[field].json_name.is_some() {
            self.error("json_name is already set");
        }
        self.pool[field].at.json_name = self.lexer.current.position();
        let name = self.located(&[path::JSON_NAME], |parser, _| {
            parser.expect(b"json_name")?;
            parser.expect(b"=")?;
            let value = parser.open(&[]);
            let name = parser.string("a name in quotes")?;
            parser.close(value);
            Ok(name)
        })?;
        self.pool[field].json_name = Some(String::from_utf8_lossy(&name).into());
        Ok(())
    }

    fn default_value(&mut self, field: FieldId) -> Parsed {
        if self.pool[field].default.is_some() {
            self.error("the default is already set");
        }
        self.expect(b"default")?;
        self.expect(b"=")?;
        self.pool[field].at.default = self.lexer.current.position();
        let kind = self.pool[field].kind;
        // Known even where the value is none, so that it is not "already set" by another error.
        self.pool[field].default = Some(Vec::new());
        let value = self.located(&[path::DEFAULT_VALUE], |parser, _| parser.default_of(kind))?;
        self.pool[field].default = Some(value);
        Ok(())
    }

    fn default_of(&mut self, kind: Option<Kind>) -> Parsed<Vec<u8>> {
        let max = match kind {
            // An enum, it seems; a message is found out later.
            None => {
                let value = self.text().to_vec();
                self.lexer.next();
                return Ok(value);
            }
            Some(Kind::Message | Kind::Group) => {
                return self.fail("a message has no default value".to_owned());
            }
            Some(Kind::Double | Kind::Float) => {
                let sign = if self.eat(b"-") { "-" } else { "" };
                let text = literal::double_text(self.number()?);
                return Ok(format!("{sign}{text}").into_bytes());
            }
            Some(Kind::Bool) if self.at(b"true") || self.at(b"false") => {
                let value = self.text().to_vec();
                self.lexer.next();
                return Ok(value);
            }
            Some(Kind::Bool) => {
                return self.fail(format!("expected \"true\" or \"false\", found {}", self.found()));
            }
            Some(Kind::String) => return self.string("a default value in quotes"),
            Some(Kind::Bytes) => {
                return self.string("a default value in quotes").map(|value| literal::escape(&value));
            }
            Some(Kind::Enum) => return self.identifier("an enum value").map(|name| name.as_bytes().to_vec()),
            Some(Kind::Int32 | Kind::Sint32 | Kind::Sfixed32) => i32::MAX as u64,
            Some(Kind::Int64 | Kind::Sint64 | Kind::Sfixed64) => i64::MAX as u64,
            Some(Kind::Uint32 | Kind::Fixed32) => u64::from(u32::MAX),
            Some(Kind::Uint64 | Kind::Fixed64) => u64::MAX,
        };
        let is_negative = self.at(b"-");
        if is_negative && matches!(kind, Some(Kind::Uint32 | Kind::Fixed32 | Kind::Uint64 | Kind::Fixed64)) {
            self.lexer.next();
            self.error("an unsigned field cannot have a negative default value");
            return self.integer_to(max, "an integer").map(|value| value.to_string().into_bytes());
        }
        let sign = if self.eat(b"-") { "-" } else { "" };
        let value = self.integer_to(max + u64::from(is_negative), "an integer")?;
        // "-0" is the 0 of an integer.
        let sign = if value == 0 { "" } else { sign };
        Ok(format!("{sign}{value}").into_bytes())
    }
}

/// `FooBarEntry` of the field `foo_bar`.
pub(in crate::sources) fn map_entry_name(field: &str) -> String {
    let mut name = String::with_capacity(field.len() + 5);
    let mut starts_word = true;
    for c in field.chars() {
        if c == '_' {
            starts_word = true;
        } else {
            name.push(if starts_word { c.to_ascii_uppercase() } else { c });
            starts_word = false;
        }
    }
    name.push_str("Entry");
    name
}
