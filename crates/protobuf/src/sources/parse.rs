//! Parses the text of a file to declarations, without resolving names and interpreting options.
//!
//! The grammar, the error recovery, and the order of locations are those of protoc.

mod enums;
mod field;
mod message;
mod option;
mod parser;
pub(super) mod path;
mod range;
mod service;

pub(super) use field::map_entry_name;
pub(super) use message::FIELD_NUMBER_MAX;

use super::edition::Edition;
use super::error::Position;
use super::ids::FileId;
use super::lex::{Token, TokenKind};
use super::locations::LocationId;
use super::pool::{Import, ImportKind, Pool};

use parser::{Parsed, Parser};

/// Parses `text` into `pool`, which also records errors.
pub(super) fn parse(pool: &mut Pool, file: FileId, text: &str) {
    let mut parser = Parser::new(pool, file, text);
    parser.file();
    let locations = std::mem::take(&mut parser.locations);
    let errors = std::mem::take(&mut parser.lexer.errors);
    for error in errors {
        pool.error(file, error.at, error.message);
    }
    pool[file].locations = locations;
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
            self.pool[file].syntax_at = Position::WHOLE_FILE;
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
                // Editions for protoc's own tests, and the one in development.
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
        let count = |parser: &Self, is_counted: &dyn Fn(ImportKind) -> bool| {
            parser.pool[file].imports.iter().filter(|import| is_counted(import.kind)).count() as i32
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
}
