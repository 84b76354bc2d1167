//! From the text of a file to its declarations. Names are not resolved and options not interpreted yet.
//!
//! The grammar, the recovery after an error, and the order of locations are those of protoc.

mod enums;
mod field;
mod message;
mod option;
mod range;
mod service;

pub(super) use field::map_entry_name;
pub(super) use message::FIELD_NUMBER_MAX;

use std::rc::Rc;

use super::comments::Comments;
use super::error::Position;
use super::lex::{Lexer, Token, TokenKind};
use super::literal;
use super::locations::{LocationId, Locations};
use super::pool::{Edition, FileId, Import, ImportKind, Pool, Visibility};

/// Messages and groups nest at most this deep, as in protoc.
pub(super) const NESTING_MAX: usize = 32;

/// A statement that cannot be used; why was recorded.
#[derive(Debug)]
pub(super) struct Failed;

pub(super) type Parsed<T = ()> = Result<T, Failed>;

/// Field numbers of descriptors, for paths in source info.
pub(super) mod path {
    pub(in crate::sources) mod file {
        pub(in crate::sources) const PACKAGE: i32 = 2;
        pub(in crate::sources) const DEPENDENCY: i32 = 3;
        pub(in crate::sources) const MESSAGE: i32 = 4;
        pub(in crate::sources) const ENUM: i32 = 5;
        pub(in crate::sources) const SERVICE: i32 = 6;
        pub(in crate::sources) const EXTENSION: i32 = 7;
        pub(in crate::sources) const OPTIONS: i32 = 8;
        pub(in crate::sources) const PUBLIC_DEPENDENCY: i32 = 10;
        pub(in crate::sources) const WEAK_DEPENDENCY: i32 = 11;
        pub(in crate::sources) const SYNTAX: i32 = 12;
        pub(in crate::sources) const OPTION_DEPENDENCY: i32 = 15;
    }
    pub(in crate::sources) mod message {
        pub(in crate::sources) const FIELD: i32 = 2;
        pub(in crate::sources) const MESSAGE: i32 = 3;
        pub(in crate::sources) const ENUM: i32 = 4;
        pub(in crate::sources) const EXTENSION_RANGE: i32 = 5;
        pub(in crate::sources) const EXTENSION: i32 = 6;
        pub(in crate::sources) const OPTIONS: i32 = 7;
        pub(in crate::sources) const ONEOF: i32 = 8;
        pub(in crate::sources) const RESERVED_RANGE: i32 = 9;
        pub(in crate::sources) const RESERVED_NAME: i32 = 10;
    }
    /// `name` is 1 in each of them.
    pub(in crate::sources) const NAME: i32 = 1;
}

/// Parses `text` into `pool`. Errors are recorded there.
pub(super) fn parse(pool: &mut Pool, file: FileId, text: &str) {
    let mut parser = Parser {
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
    };
    parser.file();
    let locations = std::mem::take(&mut parser.locations);
    let errors = std::mem::take(&mut parser.lexer.errors);
    for error in errors {
        pool.error(file, error.at, error.message);
    }
    pool[file].locations = locations;
}

pub(super) struct Parser<'s, 'p> {
    lexer: Lexer<'s>,
    pool: &'p mut Pool,
    file: FileId,
    /// Of the declaration around the current one.
    path: Vec<i32>,
    locations: Locations,
    /// The comments before the next declaration: leading and detached ones.
    upcoming: Comments,
    edition: Edition,
    has_package: bool,
    depth: usize,
    /// Options of extension ranges that were copied to the other ranges of their statement.
    option_copies: usize,
}

impl Parser<'_, '_> {
    fn file(&mut self) {
        self.upcoming = self.lexer.next_with_comments();
        let root = self.open(&[]);
        if self.at(b"syntax") || self.at(b"edition") {
            if self.syntax().is_err() {
                return;
            }
        } else {
            let file = self.file;
            self.pool[file].syntax_at = Position::NONE;
        }
        while self.lexer.current.kind != TokenKind::End {
            if self.top_level().is_err() {
                self.skip_statement();
                if self.at(b"}") {
                    self.error("\"}\" without a \"{\" before it");
                    self.upcoming = self.lexer.next_with_comments();
                }
            }
        }
        self.close(root);
    }

    fn syntax(&mut self) -> Parsed {
        self.located(&[path::file::SYNTAX], |parser, location| {
            let at = parser.lexer.current.position();
            let is_edition = parser.eat(b"edition");
            if !is_edition {
                parser.expect(b"syntax")?;
            }
            parser.expect(b"=")?;
            let value_at = parser.lexer.current.position();
            let value = parser.string("a syntax or an edition in quotes")?;
            let value = String::from_utf8_lossy(&value).into_owned();
            parser.end_declaration(b";", Some(location))?;
            parser.edition = match (is_edition, value.as_str()) {
                (false, "proto2") => Edition::PROTO2,
                (false, "proto3") => Edition::PROTO3,
                (true, "2023") => Edition::E2023,
                (true, "2024") => Edition::E2024,
                (true, "2026") => Edition::E2026,
                // Editions for protoc's own tests, and the one that is being made.
                (true, name)
                    if name.ends_with("_TEST_ONLY") || matches!(name, "LEGACY" | "UNSTABLE" | "MAX") =>
                {
                    return parser.fail_at(at, format!("edition \"{value}\" is not supported"));
                }
                (is_edition, _) => {
                    let message = if is_edition {
                        format!("unknown edition \"{value}\": expected \"2023\", \"2024\" or \"2026\"")
                    } else {
                        format!("unknown syntax \"{value}\": expected \"proto2\" or \"proto3\"")
                    };
                    return parser.fail_at(value_at, message);
                }
            };
            let file = parser.file;
            parser.pool[file].edition = parser.edition;
            parser.pool[file].syntax_at = at;
            Ok(())
        })
    }

    fn top_level(&mut self) -> Parsed {
        if self.try_end_declaration(b";", None) {
            return Ok(());
        }
        let visibility = self.visibility()?;
        let file = self.file;
        let text = self.lexer.text(self.lexer.current);
        match text {
            b"message" => {
                let index = self.pool[file].messages.len() as i32;
                self.located(&[path::file::MESSAGE, index], |parser, location| {
                    parser.message(None, visibility, location)
                })
            }
            b"enum" => {
                let index = self.pool[file].enums.len() as i32;
                self.located(&[path::file::ENUM, index], |parser, location| {
                    parser.enumeration(None, visibility, location)
                })
            }
            b"service" => {
                let index = self.pool[file].services.len() as i32;
                self.located(&[path::file::SERVICE, index], Self::service)
            }
            b"extend" => self.extend(None),
            b"import" => self.import(),
            b"package" => self.package(),
            b"option" => {
                let mut options = self.pool[file].options.take();
                let parsed = self.located(&[path::file::OPTIONS], |parser, _| {
                    parser.option_statement(&mut options)
                });
                self.pool[file].options = options;
                parsed
            }
            _ => self.fail(format!(
                "expected \"message\", \"enum\", \"service\", \"extend\", \"import\", \"package\" or \"option\", \
                 found {}",
                self.found()
            )),
        }
    }

    fn package(&mut self) -> Parsed {
        if self.has_package {
            self.error("the package is already set");
        }
        self.has_package = true;
        self.located(&[path::file::PACKAGE], |parser, location| {
            let file = parser.file;
            parser.pool[file].package_at = parser.lexer.current.position();
            parser.expect(b"package")?;
            let mut name = parser.identifier("a package name")?.to_string();
            while parser.eat(b".") {
                name.push('.');
                name.push_str(&parser.identifier("an identifier")?);
            }
            parser.pool[file].package = name.into();
            parser.end_declaration(b";", Some(location))
        })
    }

    fn import(&mut self) -> Parsed {
        let start = self.lexer.current;
        self.expect(b"import")?;
        if self.at(b"option") {
            return self.option_import(start);
        }
        let file = self.file;
        let count = |parser: &Self, wanted: &dyn Fn(ImportKind) -> bool| {
            parser.pool[file].imports.iter().filter(|import| wanted(import.kind)).count() as i32
        };
        let index = count(self, &|kind| kind != ImportKind::Option);
        let location = self.open(&[path::file::DEPENDENCY, index]);
        self.locations.start_at(location, start);
        if count(self, &|kind| kind == ImportKind::Option) > 0 {
            self.error("imports must precede option imports");
        }
        let mut kind = ImportKind::Plain;
        if self.at(b"public") {
            kind = ImportKind::Public;
            let index = count(self, &|kind| kind == ImportKind::Public);
            self.located(&[path::file::PUBLIC_DEPENDENCY, index], |parser, _| parser.expect(b"public"))?;
        } else if self.at(b"weak") {
            if self.edition >= Edition::E2024 {
                self.error("edition 2024 has no weak imports: use \"import option\"");
            }
            kind = ImportKind::Weak;
            let index = count(self, &|kind| kind == ImportKind::Weak);
            self.located(&[path::file::WEAK_DEPENDENCY, index], |parser, _| parser.expect(b"weak"))?;
        }
        self.imported_file(kind, start, location)
    }

    fn option_import(&mut self, start: Token) -> Parsed {
        if self.edition < Edition::E2024 {
            self.error("option imports need edition 2024");
        }
        let file = self.file;
        let imports = &self.pool[file].imports;
        let index = imports.iter().filter(|import| import.kind == ImportKind::Option).count() as i32;
        let location = self.open(&[path::file::OPTION_DEPENDENCY, index]);
        self.locations.start_at(location, start);
        self.expect(b"option")?;
        self.imported_file(ImportKind::Option, start, location)
    }

    fn imported_file(&mut self, kind: ImportKind, start: Token, location: LocationId) -> Parsed {
        let name = self.string("the imported file's name in quotes")?;
        let name = String::from_utf8_lossy(&name).into();
        let file = self.file;
        self.pool[file].imports.push(Import { name, kind, at: start.position(), file: None });
        self.end_declaration(b";", Some(location))?;
        self.close(location);
        Ok(())
    }

    fn visibility(&mut self) -> Parsed<Visibility> {
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
}

/// Tokens.
impl<'s> Parser<'s, '_> {
    fn text(&self) -> &'s [u8] {
        self.lexer.text(self.lexer.current)
    }

    fn at(&self, text: &[u8]) -> bool {
        self.text() == text
    }

    fn at_kind(&self, kind: TokenKind) -> bool {
        self.lexer.current.kind == kind
    }

    fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.at(text);
        if found {
            self.lexer.next();
        }
        found
    }

    fn expect(&mut self, text: &[u8]) -> Parsed {
        if self.eat(text) {
            return Ok(());
        }
        self.fail(format!("expected \"{}\", found {}", String::from_utf8_lossy(text), self.found()))
    }

    /// What is there in place of what was expected.
    fn found(&self) -> String {
        match self.lexer.current.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::String => "a string".to_owned(),
            _ => format!("\"{}\"", String::from_utf8_lossy(self.text())),
        }
    }

    fn identifier(&mut self, expected: &str) -> Parsed<Rc<str>> {
        if !self.at_kind(TokenKind::Identifier) {
            return self.fail(format!("expected {expected}, found {}", self.found()));
        }
        let name = String::from_utf8_lossy(self.text()).into();
        self.lexer.next();
        Ok(name)
    }

    /// An integer up to `i32::MAX`. One that is too large is an error, but a number.
    fn integer(&mut self, expected: &str) -> Parsed<i32> {
        Ok(self.integer_to(i32::MAX as u64, expected)? as i32)
    }

    fn signed_integer(&mut self, expected: &str) -> Parsed<i32> {
        let is_negative = self.eat(b"-");
        let max = i32::MAX as u64 + u64::from(is_negative);
        let value = self.integer_to(max, expected)? as i64;
        Ok(if is_negative { -value } else { value } as i32)
    }

    fn integer_to(&mut self, max: u64, expected: &str) -> Parsed<u64> {
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

    fn number(&mut self) -> Parsed<f64> {
        let text = self.text();
        let value = match self.lexer.current.kind {
            TokenKind::Float => literal::float(text).unwrap_or_default(),
            TokenKind::Integer => match literal::integer(text, u64::MAX) {
                Some(value) => value as f64,
                // Too large for an integer, and only decimal numbers may be floats.
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

    /// Adjacent strings are one.
    fn string(&mut self, expected: &str) -> Parsed<Vec<u8>> {
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

    /// Consumes the token that ends a declaration, or begins its block, and gives `location` its comments.
    fn try_end_declaration(&mut self, text: &[u8], location: Option<LocationId>) -> bool {
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
            // The end of a scope drops what was there for its next declaration.
            None if text == b"}" => self.upcoming.detached = detached,
            None => self.upcoming.detached.extend(detached),
        }
        true
    }

    fn end_declaration(&mut self, text: &[u8], location: Option<LocationId>) -> Parsed {
        if self.try_end_declaration(text, location) {
            return Ok(());
        }
        self.fail(format!("expected \"{}\", found {}", String::from_utf8_lossy(text), self.found()))
    }

    /// The statements of a block until its `}`, with recovery after each that fails.
    fn block(&mut self, what: &str, mut statement: impl FnMut(&mut Self) -> Parsed) -> Parsed {
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

    fn skip_statement(&mut self) {
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
    fn error(&mut self, message: impl Into<String>) {
        self.error_at(self.lexer.current.position(), message);
    }

    fn error_at(&mut self, at: Position, message: impl Into<String>) {
        self.flush_lexical_errors();
        self.pool.error(self.file, at, message);
    }

    fn flush_lexical_errors(&mut self) {
        for error in std::mem::take(&mut self.lexer.errors) {
            self.pool.error(self.file, error.at, error.message);
        }
    }

    fn fail<T>(&mut self, message: String) -> Parsed<T> {
        self.error(message);
        Err(Failed)
    }

    fn fail_at<T>(&mut self, at: Position, message: String) -> Parsed<T> {
        self.error_at(at, message);
        Err(Failed)
    }

    /// Opens a location that begins at the current token.
    fn open(&mut self, suffix: &[i32]) -> LocationId {
        self.locations.open(&self.path, suffix, self.lexer.current)
    }

    /// Ends a location at the last consumed token.
    fn close(&mut self, location: LocationId) {
        self.locations.close(location, self.lexer.previous);
    }

    /// Parses what is at a location, with its path as the path of all inside of it.
    fn located<T>(
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

    /// A name at its location. Returns where it is, too.
    fn name(&mut self, expected: &str) -> Parsed<(Rc<str>, Position)> {
        let at = self.lexer.current.position();
        let name = self.located(&[path::NAME], |parser, _| parser.identifier(expected))?;
        Ok((name, at))
    }
}
