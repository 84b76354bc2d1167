//! `extensions` and `reserved`.

use std::rc::Rc;

use super::parser::{Parsed, Parser};
use super::path::message as path;
use crate::sources::ids::{EnumId, MessageId};
use crate::sources::lex::{Token, TokenKind};
use crate::sources::locations::{LocationId, Locations};
use crate::sources::pool::{ExtensionRange, NumberRange};

/// End of a message's range to `max`, until the message's options are known.
pub(super) const TO_MAX: i32 = -1;

/// Maximum number of copies of options: the options of an `extensions` statement apply to each of its ranges.
const OPTION_COPIES_MAX: usize = 100_000;

/// The declaration whose numbers and names are reserved.
#[derive(Clone, Copy)]
enum Owner {
    Message(MessageId),
    Enum(EnumId),
}

impl Parser<'_, '_> {
    pub(super) fn extensions(&mut self, message: MessageId, location: LocationId) -> Parsed {
        self.expect(b"extensions")?;
        let first = self.pool[message].extension_ranges.len();
        loop {
            let index = self.pool[message].extension_ranges.len() as i32;
            let range =
                self.located(&[index], |parser, _| parser.message_range("a number or a range of numbers"))?;
            self.pool[message].extension_ranges.push(ExtensionRange { range, options: None });
            if !self.eat(b",") {
                break;
            }
        }
        if self.at(b"[") {
            self.extension_options(message, first)?;
        }
        self.end_declaration(b";", Some(location))
    }

    /// Copies the options after several ranges to each range.
    fn extension_options(&mut self, message: MessageId, first: usize) -> Parsed {
        let outer = std::mem::take(&mut self.locations);
        let index_at = self.path.len();
        self.path.push(0);
        let mut options = None;
        let parsed = self.bracketed_options(3, &mut options);
        self.path.pop();
        let written: Locations = std::mem::replace(&mut self.locations, outer);
        parsed?;
        let Some(options) = options else { return Ok(()) };
        let ranges = self.pool[message].extension_ranges.len();
        self.option_copies += (ranges - first) * written.len() as usize;
        if self.option_copies > OPTION_COPIES_MAX {
            return self.fail("too many options of extension ranges".to_owned());
        }
        for index in first..ranges {
            let offset = self.locations.append_for_index(&written, index_at, index as i32);
            let mut uninterpreted = options.uninterpreted.clone();
            for option in &mut uninterpreted {
                option.locations.start += offset;
                option.locations.end += offset;
            }
            let copy = &mut self.pool[message].extension_ranges[index].options;
            copy.get_or_insert_default().uninterpreted = uninterpreted;
        }
        Ok(())
    }

    pub(super) fn reserved(&mut self, message: MessageId) -> Parsed {
        self.reserved_of(Owner::Message(message), path::RESERVED_NAME, path::RESERVED_RANGE)
    }

    pub(super) fn reserved_in_enum(&mut self, owner: EnumId) -> Parsed {
        self.reserved_of(Owner::Enum(owner), 5, 4)
    }

    fn reserved_of(&mut self, owner: Owner, names: i32, ranges: i32) -> Parsed {
        let start = self.lexer.current;
        self.expect(b"reserved")?;
        let is_edition = !self.edition.is_legacy();
        match self.lexer.current.kind {
            TokenKind::String if is_edition => {
                self.fail("reserved names are identifiers in editions: remove the quotes".to_owned())
            }
            TokenKind::Identifier if !is_edition => {
                self.fail("reserved names must be in quotes: only editions have identifiers here".to_owned())
            }
            TokenKind::String | TokenKind::Identifier => self.reserved_list(names, start, |parser| {
                let index = parser.reserved_names(owner).len() as i32;
                let name: Rc<str> = parser.located(&[index], |parser, _| {
                    if is_edition {
                        return parser.identifier("a name");
                    }
                    let at = parser.lexer.current.position();
                    let name = String::from_utf8_lossy(&parser.string("a name in quotes")?).into_owned();
                    let is_identifier = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                    if !is_identifier || !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                        let file = parser.file;
                        parser.pool.warning(
                            file,
                            at,
                            format!("reserved name \"{name}\" is not an identifier"),
                        );
                    }
                    Ok(name.into())
                })?;
                parser.reserved_names(owner).push(name);
                Ok(())
            }),
            _ => self.reserved_list(ranges, start, |parser| {
                let index = parser.reserved_ranges(owner).len() as i32;
                let range = parser.located(&[index], |parser, _| match owner {
                    Owner::Message(_) => parser.message_range("a name, a number or a range of numbers"),
                    Owner::Enum(_) => parser.enum_range(),
                })?;
                parser.reserved_ranges(owner).push(range);
                Ok(())
            }),
        }
    }

    fn reserved_list(
        &mut self,
        number: i32,
        start: Token,
        mut item: impl FnMut(&mut Self) -> Parsed,
    ) -> Parsed {
        self.located(&[number], |parser, location| {
            parser.locations.start_at(location, start);
            item(parser)?;
            while parser.eat(b",") {
                item(parser)?;
            }
            parser.end_declaration(b";", Some(location))
        })
    }

    fn reserved_names(&mut self, owner: Owner) -> &mut Vec<Rc<str>> {
        match owner {
            Owner::Message(message) => &mut self.pool[message].reserved_names,
            Owner::Enum(owner) => &mut self.pool[owner].reserved_names,
        }
    }

    fn reserved_ranges(&mut self, owner: Owner) -> &mut Vec<NumberRange> {
        match owner {
            Owner::Message(message) => &mut self.pool[message].reserved,
            Owner::Enum(owner) => &mut self.pool[owner].reserved,
        }
    }

    /// Parses a range with an exclusive end.
    fn message_range(&mut self, expected: &str) -> Parsed<NumberRange> {
        let bounded = |parser: &mut Self, expected: &str| {
            let number = parser.integer(expected)?;
            if number == i32::MAX {
                return parser.fail("field number out of range".to_owned());
            }
            Ok(number)
        };
        self.range(
            |parser| bounded(parser, expected),
            |parser| bounded(parser, "an integer or \"max\""),
            TO_MAX - 1,
        )
        .map(|range| NumberRange { end: range.end + 1, ..range })
    }

    /// Parses a range with an inclusive end.
    fn enum_range(&mut self) -> Parsed<NumberRange> {
        self.range(
            |parser| parser.signed_integer("a name, a number or a range of numbers"),
            |parser| parser.signed_integer("an integer or \"max\""),
            i32::MAX,
        )
    }

    fn range(
        &mut self,
        first: impl FnOnce(&mut Self) -> Parsed<i32>,
        last: impl FnOnce(&mut Self) -> Parsed<i32>,
        max: i32,
    ) -> Parsed<NumberRange> {
        let token = self.lexer.current;
        let start = self.located(&[1], |parser, _| first(parser))?;
        let end = if self.eat(b"to") {
            self.located(&[2], |parser, _| if parser.eat(b"max") { Ok(max) } else { last(parser) })?
        } else {
            let location = self.open(&[2]);
            self.locations.start_at(location, token);
            self.locations.close(location, token);
            start
        };
        Ok(NumberRange { start, end, at: token.position() })
    }
}
