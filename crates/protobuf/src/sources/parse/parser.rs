//! Parser state: tokens, errors and locations.

use std::rc::Rc;

use super::path;
use crate::sources::comments::Comments;
use crate::sources::edition::Edition;
use crate::sources::error::Position;
use crate::sources::ids::FileId;
use crate::sources::lex::{Lexer, TokenKind};
use crate::sources::literal;
use crate::sources::locations::{LocationId, Locations};
use crate::sources::pool::Pool;

/// A statement that cannot be used; its error has been recorded.
#[derive(Debug)]
pub(super) struct ParseFailed;

pub(super) type Parsed<T = ()> = Result<T, ParseFailed>;

pub(super) struct Parser<'s, 'p> {
    pub(super) lexer: Lexer<'s>,
    pub(super) pool: &'p mut Pool,
    pub(super) file: FileId,
    /// Path of the enclosing declaration.
    pub(super) path: Vec<i32>,
    pub(super) locations: Locations,
    /// The leading and detached comments before the next declaration.
    pub(super) upcoming: Comments,
    pub(super) edition: Edition,
    pub(super) has_package: bool,
    pub(super) depth: usize,
    /// Options of extension ranges copied so far to the other ranges of their statement.
    pub(super) option_copies: usize,
}

impl<'s, 'p> Parser<'s, 'p> {
    pub(super) fn new(pool: &'p mut Pool, file: FileId, text: &'s str) -> Self {
        Parser {
            lexer: Lexer::new(text),
            pool,
            file,
            path: Vec::new(),
            locations: Locations::default(),
            upcoming: Comments::default(),
            edition: Edition::PROTO2,
            has_package: false,
            depth: 0,
            option_copies: 0,
        }
    }
}

/// Tokens.
impl<'s> Parser<'s, '_> {
    pub(super) fn text(&self) -> &'s [u8] {
        self.lexer.text(self.lexer.current)
    }

    pub(super) fn at(&self, text: &[u8]) -> bool {
        self.text() == text
    }

    pub(super) fn at_kind(&self, kind: TokenKind) -> bool {
        self.lexer.current.kind == kind
    }

    pub(super) fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.at(text);
        if found {
            self.lexer.next();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &[u8]) -> Parsed {
        if self.eat(text) {
            return Ok(());
        }
        self.fail(format!("expected \"{}\", found {}", String::from_utf8_lossy(text), self.found()))
    }

    /// Describes the current token in place of an expected one.
    pub(super) fn found(&self) -> String {
        match self.lexer.current.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::String => "a string".to_owned(),
            _ => format!("\"{}\"", String::from_utf8_lossy(self.text())),
        }
    }

    pub(super) fn identifier(&mut self, expected: &str) -> Parsed<Rc<str>> {
        if !self.at_kind(TokenKind::Identifier) {
            return self.fail(format!("expected {expected}, found {}", self.found()));
        }
        let name = String::from_utf8_lossy(self.text()).into();
        self.lexer.next();
        Ok(name)
    }

    /// Parses an integer up to `i32::MAX`. A larger one is reported as an error, but parsing continues.
    pub(super) fn integer(&mut self, expected: &str) -> Parsed<i32> {
        Ok(self.integer_to(i32::MAX as u64, expected)? as i32)
    }

    pub(super) fn signed_integer(&mut self, expected: &str) -> Parsed<i32> {
        let is_negative = self.eat(b"-");
        let max = i32::MAX as u64 + u64::from(is_negative);
        let value = self.integer_to(max, expected)? as i64;
        Ok(if is_negative { -value } else { value } as i32)
    }

    pub(super) fn integer_to(&mut self, max: u64, expected: &str) -> Parsed<u64> {
        if !self.at_kind(TokenKind::Integer) {
            return self.fail(format!("expected {expected}, found {}", self.found()));
        }
        let value = literal::integer(self.text(), max).unwrap_or_else(|| {
            self.error(format!("integer out of range: at most {max} here"));
            0
        });
        self.lexer.next();
        Ok(value)
    }

    pub(super) fn number(&mut self) -> Parsed<f64> {
        let text = self.text();
        let value = match self.lexer.current.kind {
            TokenKind::Float => literal::float(text).unwrap_or_default(),
            TokenKind::Integer => match literal::integer(text, u64::MAX) {
                Some(value) => value as f64,
                // Too large for an integer; only decimal numbers may be floats.
                None => literal::float(text).filter(|_| text[0] != b'0').unwrap_or_else(|| {
                    self.error("integer out of range");
                    0.0
                }),
            },
            _ if text == b"inf" => f64::INFINITY,
            _ if text == b"nan" => f64::NAN,
            _ => return self.fail(format!("expected a number, found {}", self.found())),
        };
        self.lexer.next();
        Ok(value)
    }

    /// Parses a string; adjacent strings are concatenated.
    pub(super) fn string(&mut self, expected: &str) -> Parsed<Vec<u8>> {
        if !self.at_kind(TokenKind::String) {
            return self.fail(format!("expected {expected}, found {}", self.found()));
        }
        let mut value = Vec::new();
        while self.at_kind(TokenKind::String) {
            literal::unescape(self.text(), &mut value);
            self.lexer.next();
        }
        Ok(value)
    }

    /// Consumes the token that ends a declaration or starts its block, and attaches the comments to `location`.
    pub(super) fn try_end_declaration(&mut self, text: &[u8], location: Option<LocationId>) -> bool {
        if !self.at(text) {
            return false;
        }
        let Comments { trailing, detached, leading } = self.lexer.next_with_comments();
        let leading = std::mem::replace(&mut self.upcoming.leading, leading);
        match location {
            Some(location) => {
                let detached = std::mem::replace(&mut self.upcoming.detached, detached);
                self.locations.attach(location, Comments { trailing, detached, leading });
            }
            // The end of a scope drops the comments collected for its next declaration.
            None if text == b"}" => self.upcoming.detached = detached,
            None => self.upcoming.detached.extend(detached),
        }
        true
    }

    pub(super) fn end_declaration(&mut self, text: &[u8], location: Option<LocationId>) -> Parsed {
        if self.try_end_declaration(text, location) {
            return Ok(());
        }
        self.fail(format!("expected \"{}\", found {}", String::from_utf8_lossy(text), self.found()))
    }

    /// Parses the statements of a block up to its `}`, recovering after each error.
    pub(super) fn block(&mut self, what: &str, mut statement: impl FnMut(&mut Self) -> Parsed) -> Parsed {
        while !self.try_end_declaration(b"}", None) {
            if self.at_kind(TokenKind::End) {
                return self
                    .fail(format!("expected \"}}\" at the end of the {what}, found the end of the file"));
            }
            if statement(self).is_err() {
                self.skip_statement();
            }
        }
        Ok(())
    }

    pub(super) fn skip_statement(&mut self) {
        while !self.at_kind(TokenKind::End) {
            if self.at_kind(TokenKind::Symbol) {
                if self.try_end_declaration(b";", None) {
                    return;
                }
                if self.eat(b"{") {
                    return self.skip_block();
                }
                if self.at(b"}") {
                    return;
                }
            }
            self.lexer.next();
        }
    }

    fn skip_block(&mut self) {
        let mut depth = 1_usize;
        while !self.at_kind(TokenKind::End) {
            if self.at_kind(TokenKind::Symbol) {
                if self.try_end_declaration(b"}", None) {
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                } else if self.eat(b"{") {
                    depth += 1;
                }
            }
            self.lexer.next();
        }
    }
}

/// Errors and locations.
impl Parser<'_, '_> {
    pub(super) fn error(&mut self, message: impl Into<String>) {
        self.error_at(self.lexer.current.position(), message);
    }

    pub(super) fn error_at(&mut self, at: Position, message: impl Into<String>) {
        self.flush_lexical_errors();
        self.pool.error(self.file, at, message);
    }

    fn flush_lexical_errors(&mut self) {
        for error in std::mem::take(&mut self.lexer.errors) {
            self.pool.error(self.file, error.at, error.message);
        }
    }

    pub(super) fn fail<T>(&mut self, message: String) -> Parsed<T> {
        self.error(message);
        Err(ParseFailed)
    }

    pub(super) fn fail_at<T>(&mut self, at: Position, message: String) -> Parsed<T> {
        self.error_at(at, message);
        Err(ParseFailed)
    }

    /// Opens a location that starts at the current token.
    pub(super) fn open(&mut self, suffix: &[i32]) -> LocationId {
        self.locations.open(&self.path, suffix, self.lexer.current)
    }

    /// Ends a location at the last consumed token.
    pub(super) fn close(&mut self, location: LocationId) {
        self.locations.close(location, self.lexer.previous);
    }

    /// Parses an element at a new location, whose path is a prefix of all paths inside it.
    pub(super) fn located<T>(
        &mut self,
        suffix: &[i32],
        parse: impl FnOnce(&mut Self, LocationId) -> Parsed<T>,
    ) -> Parsed<T> {
        let location = self.open(suffix);
        let outer = self.path.len();
        self.path.extend(suffix);
        let parsed = parse(self, location);
        self.path.truncate(outer);
        self.close(location);
        parsed
    }

    /// Parses a name at its own location. Also returns its position.
    pub(super) fn name(&mut self, expected: &str) -> Parsed<(Rc<str>, Position)> {
        let at = self.lexer.current.position();
        let name = self.located(&[path::NAME], |parser, _| parser.identifier(expected))?;
        Ok((name, at))
    }
}
