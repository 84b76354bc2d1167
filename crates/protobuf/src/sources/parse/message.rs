//! Messages, oneofs and `extend` blocks.

use std::collections::HashSet;
use std::rc::Rc;

use super::path::{file, message as path};
use super::{NESTING_MAX, Parsed, Parser};
use crate::sources::error::Position;
use crate::sources::features::Features;
use crate::sources::lex::TokenKind;
use crate::sources::locations::LocationId;
use crate::sources::parse::field::FieldStart;
use crate::sources::pool::{
    Edition, ExtensionRange, Label, Message, MessageId, NumberRange, Oneof, RawValue, Visibility,
};

/// The largest field number, 2^29 - 1.
pub(in crate::sources) const FIELD_NUMBER_MAX: i32 = (1 << 29) - 1;

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

    /// An empty message, at the end of its parent's or the file's.
    pub(super) fn add_message(&mut self, parent: Option<MessageId>) -> MessageId {
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

    pub(super) fn messages_of(&mut self, parent: Option<MessageId>) -> &mut Vec<MessageId> {
        match parent {
            Some(parent) => &mut self.pool[parent].messages,
            None => &mut self.pool[self.file].messages,
        }
    }

    /// Counts a level of messages or groups.
    pub(super) fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Parsed) -> Parsed {
        if self.depth + 1 >= NESTING_MAX {
            return self.fail(format!("messages nest at most {} levels deep", NESTING_MAX - 1));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    pub(super) fn message_block(&mut self, message: MessageId, location: LocationId) -> Parsed {
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

    /// `max` in ranges depends on an option that may come after them.
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
            if *end == super::range::TO_MAX {
                *end = max;
            }
        }
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

    /// An `extend` block, at the top level or in a message.
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
                // protoc gives errors of the extended type once a block.
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

    /// proto3's `optional` fields are oneofs of one field, so that their presence is known.
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

    /// A label, which is not there in editions but for `repeated`.
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
        self.located(&[4], |parser, _| {
            parser.lexer.next();
            Ok(())
        })?;
        Ok(Some(label))
    }
}
