//! Messages, with their fields, groups and oneofs, and `extend` blocks.

use std::collections::HashSet;
use std::rc::Rc;

use super::field::FieldStart;
use super::parser::{Parsed, Parser};
use super::path::{NAME, field as field_path, file, message as path};
use super::range::TO_MAX;
use crate::sources::edition::Edition;
use crate::sources::error::Position;
use crate::sources::features::Features;
use crate::sources::ids::{FieldId, MessageId};
use crate::sources::lex::{Token, TokenKind};
use crate::sources::locations::LocationId;
use crate::sources::pool::{
    ExtensionRange, FieldKind, Label, Message, NumberRange, Oneof, RawValue, Visibility,
};

/// Maximum field number: 2^29 - 1.
pub(in crate::sources) const FIELD_NUMBER_MAX: i32 = (1 << 29) - 1;

/// Maximum nesting depth of messages and groups, as in protoc.
const NESTING_MAX: usize = 32;

impl Parser<'_, '_> {
    pub(super) fn message(
        &mut self,
        parent: Option<MessageId>,
        visibility: Visibility,
        location: LocationId,
    ) -> Parsed {
        let message = self.add_message(parent);
        self.pool[message].visibility = visibility;
        self.nested(|parser| {
            parser.expect(b"message")?;
            let (name, name_at) = parser.name("a message name")?;
            let declared = &mut parser.pool[message];
            (declared.name, declared.name_at) = (name, name_at);
            parser.message_block(message, location)
        })?;
        if self.edition == Edition::PROTO3 {
            self.add_synthetic_oneofs(message);
        }
        Ok(())
    }

    /// Appends an empty message to its parent or the file.
    fn add_message(&mut self, parent: Option<MessageId>) -> MessageId {
        let message = self.pool.add_message(Message {
            name: "".into(),
            name_at: self.lexer.current.position(),
            full_name: "".into(),
            file: self.file,
            parent,
            node: None,
            fields: Vec::new(),
            extensions: Vec::new(),
            messages: Vec::new(),
            enums: Vec::new(),
            oneofs: Vec::new(),
            extension_ranges: Vec::new(),
            range_index: Vec::new(),
            required: Vec::new(),
            reserved: Vec::new(),
            reserved_names: Vec::new(),
            options: None,
            features: Features::default(),
            visibility: Visibility::Unset,
            is_map_entry: false,
        });
        self.messages_of(parent).push(message);
        message
    }

    fn messages_of(&mut self, parent: Option<MessageId>) -> &mut Vec<MessageId> {
        match parent {
            Some(parent) => &mut self.pool[parent].messages,
            None => &mut self.pool[self.file].messages,
        }
    }

    /// Enters a level of messages or groups.
    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth + 1 >= NESTING_MAX {
            return self.fail(format!("messages nest at most {} levels deep", NESTING_MAX - 1));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn message_block(&mut self, message: MessageId, location: LocationId) -> Parsed {
        self.end_declaration(b"{", Some(location))?;
        self.block("message", |parser| parser.message_statement(message))?;
        self.resolve_max(message);
        let options = self.pool[message].options.as_deref();
        let map_entry = options.and_then(|options| {
            options.uninterpreted.iter().find(|option| {
                option.name.first().is_some_and(|part| !part.is_extension && *part.name == *"map_entry")
            })
        });
        match map_entry.map(|option| option.name_at) {
            Some(at) => self.fail_at(at, "map_entry cannot be set: use map<KeyType, ValueType>".to_owned()),
            None => Ok(()),
        }
    }

    /// Parses `export` or `local`.
    pub(super) fn visibility(&mut self) -> Parsed<Visibility> {
        if self.edition < Edition::E2024 {
            return Ok(Visibility::Unset);
        }
        let visibility = if self.eat(b"export") {
            Visibility::Export
        } else if self.eat(b"local") {
            Visibility::Local
        } else {
            return Ok(Visibility::Unset);
        };
        if !self.at(b"message") && !self.at(b"enum") {
            return self.fail("\"export\" and \"local\" are for messages and enums only".to_owned());
        }
        Ok(visibility)
    }

    fn message_statement(&mut self, message: MessageId) -> Parsed {
        if self.try_end_declaration(b";", None) {
            return Ok(());
        }
        let visibility = self.visibility()?;
        match self.text() {
            b"message" => {
                let index = self.pool[message].messages.len() as i32;
                self.located(&[path::MESSAGE, index], |parser, location| {
                    parser.message(Some(message), visibility, location)
                })
            }
            b"enum" => {
                let index = self.pool[message].enums.len() as i32;
                self.located(&[path::ENUM, index], |parser, location| {
                    parser.enumeration(Some(message), visibility, location)
                })
            }
            b"extensions" => self
                .located(&[path::EXTENSION_RANGE], |parser, location| parser.extensions(message, location)),
            b"reserved" => self.reserved(message),
            b"extend" => self.extend(Some(message)),
            b"option" => {
                let mut options = self.pool[message].options.take();
                let parsed =
                    self.located(&[path::OPTIONS], |parser, _| parser.option_statement(&mut options));
                self.pool[message].options = options;
                parsed
            }
            b"oneof" => {
                let index = self.pool[message].oneofs.len();
                self.oneof(message, index)
            }
            _ => {
                let index = self.pool[message].fields.len() as i32;
                self.located(&[path::FIELD, index], |parser, location| {
                    let start = FieldStart { parent: Some(message), extendee: None, oneof: None };
                    parser.field(&start, location)
                })
            }
        }
    }

    /// Replaces `max` in ranges, which depends on an option that may come after them.
    fn resolve_max(&mut self, message: MessageId) {
        let is_message_set = self.pool[message].options.as_deref().is_some_and(|options| {
            options.uninterpreted.iter().any(|option| {
                let is_named = matches!(&*option.name, [part]
                    if !part.is_extension && *part.name == *"message_set_wire_format");
                is_named && matches!(&option.value, RawValue::Identifier(value) if **value == *"true")
            })
        });
        let max = if is_message_set { i32::MAX } else { FIELD_NUMBER_MAX + 1 };
        let message = &mut self.pool[message];
        let ranges = message.extension_ranges.iter_mut().map(|ExtensionRange { range, .. }| range);
        for NumberRange { end, .. } in ranges.chain(&mut message.reserved) {
            if *end == TO_MAX {
                *end = max;
            }
        }
    }

    fn field(&mut self, start: &FieldStart, location: LocationId) -> Parsed {
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
        let number = self.located(&[field_path::NUMBER], |parser, _| parser.integer("a field number"))?;
        self.pool[field].number = number;
        self.field_options(field)?;
        if self.pool[field].kind == Some(FieldKind::Group) {
            self.group(field, start, name_token, location)?;
        } else {
            self.end_declaration(b";", Some(location))?;
        }
        if let Some(map) = map {
            let entry = self.add_message(start.parent);
            self.add_map_entry(field, entry, map);
        }
        Ok(())
    }

    /// Parses a group, which is both a field and a message, so that their locations overlap.
    fn group(
        &mut self,
        field: FieldId,
        start: &FieldStart,
        name_token: Token,
        location: LocationId,
    ) -> Parsed {
        let index = self.messages_of(start.parent).len() as i32;
        let number = if start.parent.is_some() { path::MESSAGE } else { file::MESSAGE };
        // The path of the field or extension ends with two parts.
        let field_path = self.path.split_off(self.path.len() - 2);
        let parsed = self.located(&[number, index], |parser, group_location| {
            let begin = parser.locations.start_of(location);
            parser.locations.set_start(group_location, begin);
            let group = parser.add_message(start.parent);
            let name = parser.pool[field].name.clone();
            let declared = &mut parser.pool[group];
            (declared.name, declared.name_at) = (name.clone(), name_token.position());
            let named = parser.open(&[NAME]);
            parser.locations.start_at(named, name_token);
            parser.locations.close(named, name_token);
            let typed = parser.locations.open(
                parser.locations.path_of(location).to_vec().as_slice(),
                &[field_path::TYPE_NAME],
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

    fn oneof(&mut self, message: MessageId, index: usize) -> Parsed {
        let name_at = self.lexer.current.position();
        self.pool[message].oneofs.push(Oneof { name: "".into(), name_at, options: None });
        let location = self.open(&[path::ONEOF, index as i32]);
        let outer = self.path.len();
        self.path.extend([path::ONEOF, index as i32]);
        let parsed = self.oneof_head(message, index, location);
        self.path.truncate(outer);
        parsed?;
        loop {
            if self.at_kind(TokenKind::End) {
                return self
                    .fail("expected \"}\" at the end of the oneof, found the end of the file".to_owned());
            }
            self.oneof_statement(message, index)?;
            if self.try_end_declaration(b"}", None) {
                break;
            }
        }
        self.close(location);
        Ok(())
    }

    fn oneof_head(&mut self, message: MessageId, index: usize, location: LocationId) -> Parsed {
        self.expect(b"oneof")?;
        let (name, name_at) = self.name("a oneof name")?;
        let declared = &mut self.pool[message].oneofs[index];
        (declared.name, declared.name_at) = (name, name_at);
        self.end_declaration(b"{", Some(location))
    }

    fn oneof_statement(&mut self, message: MessageId, index: usize) -> Parsed {
        if self.at(b"option") {
            let mut options = self.pool[message].oneofs[index].options.take();
            let suffix = [path::ONEOF, index as i32];
            let outer = self.path.len();
            self.path.extend(suffix);
            let parsed = self.located(&[2], |parser, _| parser.option_statement(&mut options));
            self.path.truncate(outer);
            self.pool[message].oneofs[index].options = options;
            return parsed;
        }
        if self.at(b"required") || self.at(b"optional") || self.at(b"repeated") {
            self.error("fields of a oneof have no label: remove it");
            self.lexer.next();
        }
        let field = self.pool[message].fields.len() as i32;
        let parsed = self.located(&[path::FIELD, field], |parser, location| {
            let start = FieldStart { parent: Some(message), extendee: None, oneof: Some(index as u32) };
            parser.field(&start, location)
        });
        if parsed.is_err() {
            self.skip_statement();
        }
        Ok(())
    }

    /// Parses an `extend` block, at the top level or in a message.
    pub(super) fn extend(&mut self, parent: Option<MessageId>) -> Parsed {
        let number = if parent.is_some() { path::EXTENSION } else { file::EXTENSION };
        let block = self.open(&[number]);
        self.expect(b"extend")?;
        let start = self.lexer.current;
        let extendee = self.type_name()?;
        let end = self.lexer.previous;
        self.end_declaration(b"{", Some(block))?;
        let mut is_first = true;
        loop {
            if self.at_kind(TokenKind::End) {
                return self.fail(
                    "expected \"}\" at the end of the extend block, found the end of the file".to_owned(),
                );
            }
            let index = match parent {
                Some(parent) => self.pool[parent].extensions.len(),
                None => self.pool[self.file].extensions.len(),
            } as i32;
            let parsed = self.located(&[number, index], |parser, location| {
                let named = parser.open(&[2]);
                parser.locations.start_at(named, start);
                parser.locations.close(named, end);
                // protoc reports an unresolved extended type once per block.
                let extendee_at = if is_first { start.position() } else { Position::default() };
                let start =
                    FieldStart { parent, extendee: Some((extendee.clone(), extendee_at)), oneof: None };
                parser.field(&start, location)
            });
            is_first = false;
            if parsed.is_err() {
                self.skip_statement();
            }
            if self.try_end_declaration(b"}", None) {
                break;
            }
        }
        self.close(block);
        Ok(())
    }

    /// Adds a oneof for each `optional` field of proto3, so that it tracks presence.
    fn add_synthetic_oneofs(&mut self, message: MessageId) {
        let declared = &self.pool[message];
        let mut names: HashSet<Rc<str>> =
            declared.fields.iter().map(|&field| self.pool[field].name.clone()).collect();
        names.extend(declared.oneofs.iter().map(|oneof| oneof.name.clone()));
        for index in 0..declared.fields.len() {
            let field = self.pool[message].fields[index];
            if !self.pool[field].is_proto3_optional {
                continue;
            }
            let mut name = self.pool[field].name.to_string();
            if !name.starts_with('_') {
                name.insert(0, '_');
            }
            while names.contains(name.as_str()) {
                name.insert(0, 'X');
            }
            let name: Rc<str> = name.into();
            names.insert(name.clone());
            self.pool[field].oneof = Some(self.pool[message].oneofs.len() as u32);
            let name_at = self.pool[field].at.name;
            self.pool[message].oneofs.push(Oneof { name, name_at, options: None });
        }
    }
}
