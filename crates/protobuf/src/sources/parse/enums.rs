//! Enums.

use std::collections::HashSet;

use super::parser::{Parsed, Parser};
use super::path::NAME;
use crate::sources::features::Features;
use crate::sources::ids::{EnumId, MessageId};
use crate::sources::locations::LocationId;
use crate::sources::pool::{Enum, EnumValue, RawValue, Visibility};

/// Field numbers of `EnumDescriptorProto`.
mod path {
    pub(super) const VALUE: i32 = 2;
    pub(super) const OPTIONS: i32 = 3;
}

impl Parser<'_, '_> {
    pub(super) fn enumeration(
        &mut self,
        parent: Option<MessageId>,
        visibility: Visibility,
        location: LocationId,
    ) -> Parsed {
        let declared = self.pool.add_enum(Enum {
            name: "".into(),
            name_at: self.lexer.current.position(),
            full_name: "".into(),
            file: self.file,
            parent,
            values: Vec::new(),
            reserved: Vec::new(),
            reserved_names: Vec::new(),
            options: None,
            features: Features::default(),
            visibility,
        });
        match parent {
            Some(parent) => self.pool[parent].enums.push(declared),
            None => self.pool[self.file].enums.push(declared),
        }
        self.expect(b"enum")?;
        let (name, name_at) = self.name("an enum name")?;
        (self.pool[declared].name, self.pool[declared].name_at) = (name, name_at);
        self.end_declaration(b"{", Some(location))?;
        self.block("enum", |parser| parser.enum_statement(declared))?;
        self.check_alias_option(declared)
    }

    fn enum_statement(&mut self, declared: EnumId) -> Parsed {
        if self.try_end_declaration(b";", None) {
            return Ok(());
        }
        match self.text() {
            b"option" => {
                let mut options = self.pool[declared].options.take();
                let parsed =
                    self.located(&[path::OPTIONS], |parser, _| parser.option_statement(&mut options));
                self.pool[declared].options = options;
                parsed
            }
            b"reserved" => self.reserved_in_enum(declared),
            _ => {
                let index = self.pool[declared].values.len() as i32;
                self.located(&[path::VALUE, index], |parser, location| parser.enum_value(declared, location))
            }
        }
    }

    fn enum_value(&mut self, declared: EnumId, location: LocationId) -> Parsed {
        let name_at = self.lexer.current.position();
        let name = self.located(&[NAME], |parser, _| parser.identifier("the name of an enum value"))?;
        if !self.eat(b"=") {
            return self.fail(format!("expected \"=\" and the value's number, found {}", self.found()));
        }
        let number_at = self.lexer.current.position();
        let number = self.located(&[2], |parser, _| parser.signed_integer("an integer"))?;
        let mut options = None;
        self.bracketed_options(3, &mut options)?;
        self.pool[declared].values.push(EnumValue { name, name_at, number, number_at, options });
        self.end_declaration(b";", Some(location))
    }

    /// Rejects an `allow_alias` without effect. Like protoc, it fails at the token after the enum.
    fn check_alias_option(&mut self, declared: EnumId) -> Parsed {
        let Enum { name, values, options, .. } = &self.pool[declared];
        let options = options.iter().flat_map(|options| &options.uninterpreted);
        let is_alias =
            |part: &crate::sources::pool::NamePart| !part.is_extension && *part.name == *"allow_alias";
        let mut alias = options.filter(|option| matches!(&*option.name, [part] if is_alias(part)));
        let Some(alias) = alias.next() else { return Ok(()) };
        let message = if matches!(&alias.value, RawValue::Identifier(value) if **value == *"true") {
            let mut numbers = HashSet::new();
            if !values.iter().all(|value| numbers.insert(value.number)) {
                return Ok(());
            }
            format!("no values of enum \"{name}\" share a number: remove allow_alias")
        } else {
            format!("allow_alias = false of enum \"{name}\" has no effect: remove it")
        };
        self.fail(message)
    }
}
