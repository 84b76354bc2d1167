//! Fields and maps.

use std::rc::Rc;

use super::parser::{Parsed, Parser};
use super::path::field as path;
use crate::sources::edition::Edition;
use crate::sources::error::Position;
use crate::sources::features::Features;
use crate::sources::ids::{FieldId, MessageId};
use crate::sources::literal;
use crate::sources::option_value::OptionMessage;
use crate::sources::pool::{Field, FieldKind, FieldPositions, Label, OptionSet, TypeRef};

/// The facts about a field that are known before it is parsed.
pub(super) struct FieldStart {
    /// The message that declares it.
    pub(super) parent: Option<MessageId>,
    pub(super) extendee: Option<(Rc<str>, Position)>,
    pub(super) oneof: Option<u32>,
}

/// The type of a field as written.
enum DeclaredType {
    Scalar(FieldKind),
    Named(Rc<str>),
}

pub(super) struct MapType {
    key: DeclaredType,
    value: DeclaredType,
}

impl Parser<'_, '_> {
    /// Parses an optional label. Editions allow only `repeated`.
    pub(super) fn label(&mut self) -> Parsed<Option<Label>> {
        let label = match self.text() {
            b"optional" => Label::Optional,
            b"repeated" => Label::Repeated,
            b"required" => Label::Required,
            _ => return Ok(None),
        };
        if !self.edition.is_legacy() {
            match label {
                Label::Optional => self.error(
                    "editions have no label \"optional\": singular fields have presence unless \
                     features.field_presence says otherwise",
                ),
                Label::Required => self.error(
                    "editions have no label \"required\": use features.field_presence = LEGACY_REQUIRED",
                ),
                Label::Repeated => {}
            }
        }
        self.located(&[path::LABEL], |parser, _| {
            parser.lexer.next();
            Ok(())
        })?;
        Ok(Some(label))
    }

    pub(super) fn add_field(&mut self, start: &FieldStart) -> FieldId {
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

    pub(super) fn field_type(
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
            // A message named `map`.
            written = Some(DeclaredType::Named("map".into()));
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
            DeclaredType::Scalar(kind) => {
                self.pool[field].kind = Some(kind);
                path::TYPE
            }
            DeclaredType::Named(name) => {
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

    fn written_type(&mut self) -> Parsed<DeclaredType> {
        let Some(kind) = FieldKind::from_keyword(self.text()) else {
            return self.type_name().map(DeclaredType::Named);
        };
        if kind == FieldKind::Group && !self.edition.is_legacy() {
            self.error(
                "editions have no groups: use features.message_encoding = DELIMITED on a message field",
            );
        }
        self.lexer.next();
        Ok(DeclaredType::Scalar(kind))
    }

    /// Parses the name of a message or enum, which may start with a dot.
    pub(super) fn type_name(&mut self) -> Parsed<Rc<str>> {
        if FieldKind::from_keyword(self.text()).is_some() {
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

    /// Adds the fields of `entry`, the message of a map's entries.
    pub(super) fn add_map_entry(&mut self, map: FieldId, entry: MessageId, MapType { key, value }: MapType) {
        let name: Rc<str> = map_entry_name(&self.pool[map].name).into();
        self.pool[map].type_name = name.clone();
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
                DeclaredType::Scalar(kind) => declared.kind = Some(kind),
                DeclaredType::Named(name) => declared.type_name = name,
            }
        }
    }

    /// Returns the features of a map, which also apply to its keys and values.
    fn map_entry_options(&self, map: FieldId, written: &DeclaredType) -> Option<Box<OptionSet>> {
        let is_string = matches!(written, DeclaredType::Scalar(FieldKind::String));
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

    pub(super) fn field_options(&mut self, field: FieldId) -> Parsed {
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
        // Set even if the value is invalid, so that a second default is reported as "already set".
        self.pool[field].default = Some(Vec::new());
        let value = self.located(&[path::DEFAULT_VALUE], |parser, _| parser.default_of(kind))?;
        self.pool[field].default = Some(value);
        Ok(())
    }

    fn default_of(&mut self, kind: Option<FieldKind>) -> Parsed<Vec<u8>> {
        let max = match kind {
            // Probably an enum; if it is a message, linking reports that.
            None => {
                let value = self.text().to_vec();
                self.lexer.next();
                return Ok(value);
            }
            Some(FieldKind::Message | FieldKind::Group) => {
                return self.fail("a message has no default value".to_owned());
            }
            Some(FieldKind::Double | FieldKind::Float) => {
                let sign = if self.eat(b"-") { "-" } else { "" };
                let text = literal::double_text(self.number()?);
                return Ok(format!("{sign}{text}").into_bytes());
            }
            Some(FieldKind::Bool) if self.at(b"true") || self.at(b"false") => {
                let value = self.text().to_vec();
                self.lexer.next();
                return Ok(value);
            }
            Some(FieldKind::Bool) => {
                return self.fail(format!("expected \"true\" or \"false\", found {}", self.found()));
            }
            Some(FieldKind::String) => return self.string("a default value in quotes"),
            Some(FieldKind::Bytes) => {
                return self.string("a default value in quotes").map(|value| literal::escape(&value));
            }
            Some(FieldKind::Enum) => {
                return self.identifier("an enum value").map(|name| name.as_bytes().to_vec());
            }
            Some(FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32) => i32::MAX as u64,
            Some(FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64) => i64::MAX as u64,
            Some(FieldKind::Uint32 | FieldKind::Fixed32) => u64::from(u32::MAX),
            Some(FieldKind::Uint64 | FieldKind::Fixed64) => u64::MAX,
        };
        let is_negative = self.at(b"-");
        if is_negative
            && matches!(
                kind,
                Some(FieldKind::Uint32 | FieldKind::Fixed32 | FieldKind::Uint64 | FieldKind::Fixed64)
            )
        {
            self.lexer.next();
            self.error("an unsigned field cannot have a negative default value");
            return self.integer_to(max, "an integer").map(|value| value.to_string().into_bytes());
        }
        let sign = if self.eat(b"-") { "-" } else { "" };
        let value = self.integer_to(max + u64::from(is_negative), "an integer")?;
        // For an integer, `-0` is 0.
        let sign = if value == 0 { "" } else { sign };
        Ok(format!("{sign}{value}").into_bytes())
    }
}

/// Returns the name of a map's entry message: `FooBarEntry` for the field `foo_bar`.
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
