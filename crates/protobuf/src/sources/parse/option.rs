//! Parses options, which are kept as written until all names are known.

use std::rc::Rc;

use super::parser::{Parsed, Parser};
use crate::sources::lex::{Token, TokenKind};
use crate::sources::literal;
use crate::sources::locations::LocationId;
use crate::sources::pool::{NamePart, Options, RawValue, Uninterpreted};

/// The field number of `uninterpreted_option` in each options message.
const UNINTERPRETED: i32 = 999;
/// Field numbers of `UninterpretedOption`.
mod path {
    pub(super) const NAME: i32 = 2;
    pub(super) const IDENTIFIER: i32 = 3;
    pub(super) const POSITIVE: i32 = 4;
    pub(super) const NEGATIVE: i32 = 5;
    pub(super) const DOUBLE: i32 = 6;
    pub(super) const STRING: i32 = 7;
    pub(super) const AGGREGATE: i32 = 8;
}

impl Parser<'_, '_> {
    /// Parses `option name = value;`. The current path is that of the options.
    pub(super) fn option_statement(&mut self, options: &mut Options) -> Parsed {
        self.option_at(options, |parser, options, location| {
            parser.expect(b"option")?;
            parser.name_and_value(options, location)?;
            parser.end_declaration(b";", Some(location))
        })
    }

    /// Parses `name = value` in brackets.
    pub(super) fn option(&mut self, options: &mut Options) -> Parsed {
        self.option_at(options, Self::name_and_value)
    }

    /// Parses options in brackets, if there are any: `[a = 1, b = 2]`.
    pub(super) fn bracketed_options(&mut self, number: i32, options: &mut Options) -> Parsed {
        if !self.at(b"[") {
            return Ok(());
        }
        self.located(&[number], |parser, _| {
            parser.expect(b"[")?;
            parser.option(options)?;
            while parser.eat(b",") {
                parser.option(options)?;
            }
            parser.expect(b"]")
        })
    }

    fn option_at(
        &mut self,
        options: &mut Options,
        parse: impl FnOnce(&mut Self, &mut Options, LocationId) -> Parsed,
    ) -> Parsed {
        let index = options.as_ref().map_or(0, |options| options.uninterpreted.len());
        let first = self.locations.len();
        self.located(&[UNINTERPRETED, index as i32], |parser, location| parse(parser, options, location))?;
        if let Some(option) = options.as_mut().and_then(|options| options.uninterpreted.last_mut()) {
            option.locations = first..self.locations.len();
        }
        Ok(())
    }

    fn name_and_value(&mut self, options: &mut Options, _: LocationId) -> Parsed {
        let name_at = self.lexer.current.position();
        let name = self.located(&[path::NAME], |parser, _| {
            let mut name = vec![parser.name_part(0)?];
            while parser.eat(b".") {
                name.push(parser.name_part(name.len() as i32)?);
            }
            Ok(name)
        })?;
        self.expect(b"=")?;
        let value_at = self.lexer.current.position();
        let location = self.open(&[]);
        let (number, value) = self.value(location)?;
        if let Some(number) = number {
            self.locations.extend_path(location, number);
        }
        self.close(location);
        let option = Uninterpreted { name, name_at, value, value_at, locations: 0..0 };
        options.get_or_insert_default().uninterpreted.push(option);
        Ok(())
    }

    fn name_part(&mut self, index: i32) -> Parsed<NamePart> {
        self.located(&[index], |parser, _| {
            let is_extension = parser.eat(b"(");
            let name = parser.located(&[super::path::NAME], |parser, _| {
                if !is_extension {
                    return parser.identifier("an option name").map(|name| name.to_string());
                }
                let mut name = String::new();
                if parser.at_kind(TokenKind::Identifier) {
                    name.push_str(&parser.identifier("an option name")?);
                }
                while parser.eat(b".") {
                    name.push('.');
                    name.push_str(&parser.identifier("an identifier")?);
                }
                Ok(name)
            })?;
            if is_extension {
                parser.expect(b")")?;
            }
            Ok(NamePart { name: name.into(), is_extension })
        })
    }

    /// Parses a value. Returns it with the number of its field in `UninterpretedOption`.
    fn value(&mut self, _: LocationId) -> Parsed<(Option<i32>, RawValue)> {
        let is_negative = self.eat(b"-");
        match self.lexer.current.kind {
            TokenKind::Identifier => {
                let name = self.identifier("a value")?;
                let number = match (is_negative, &*name) {
                    (false, _) => return Ok((Some(path::IDENTIFIER), RawValue::Identifier(name))),
                    (true, "inf") => f64::NEG_INFINITY,
                    (true, "nan") => f64::NAN,
                    (true, _) => {
                        return self.fail("expected a number, \"inf\" or \"nan\" after \"-\"".to_owned());
                    }
                };
                Ok((Some(path::IDENTIFIER), RawValue::Double(number)))
            }
            TokenKind::Integer => {
                let max = if is_negative { i64::MAX as u64 + 1 } else { u64::MAX };
                match literal::integer(self.text(), max) {
                    Some(value) if is_negative => {
                        self.lexer.next();
                        Ok((Some(path::NEGATIVE), RawValue::Negative((value as i64).wrapping_neg())))
                    }
                    Some(value) => {
                        self.lexer.next();
                        Ok((Some(path::POSITIVE), RawValue::Positive(value)))
                    }
                    None => self.double(is_negative),
                }
            }
            TokenKind::Float => self.double(is_negative),
            TokenKind::String if is_negative => {
                self.fail("a string cannot be negative: remove \"-\"".to_owned())
            }
            TokenKind::String => {
                let value = self.string("a string")?;
                Ok((Some(path::STRING), RawValue::String(value.into())))
            }
            _ if self.at(b"{") => {
                let tokens = self.aggregate()?;
                Ok((Some(path::AGGREGATE), RawValue::Aggregate(tokens)))
            }
            _ => self.fail(format!("expected an option's value, found {}", self.found())),
        }
    }

    fn double(&mut self, is_negative: bool) -> Parsed<(Option<i32>, RawValue)> {
        let value = self.number()?;
        Ok((Some(path::DOUBLE), RawValue::Double(if is_negative { -value } else { value })))
    }

    /// Returns the tokens between braces.
    fn aggregate(&mut self) -> Parsed<Rc<[Token]>> {
        self.expect(b"{")?;
        let mut tokens = Vec::new();
        let mut depth = 1_usize;
        loop {
            if self.at_kind(TokenKind::End) {
                return self
                    .fail("expected \"}\" at the end of the value, found the end of the file".to_owned());
            }
            if self.at(b"{") {
                depth += 1;
            } else if self.at(b"}") {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            tokens.push(self.lexer.current);
            self.lexer.next();
        }
        self.lexer.next();
        Ok(tokens.into())
    }
}
