//! Option values in braces: Protobuf's text format, parsed from the file's tokens.

use std::collections::BTreeMap;

use super::scalar::{enum_number, float_value, number_value};
use crate::sources::encode;
use crate::sources::ids::{FieldId, MessageId};
use crate::sources::lex::{Token, TokenKind};
use crate::sources::link::lookup::SymbolFilter;
use crate::sources::link::{Linker, Scope};
use crate::sources::literal;
use crate::sources::option_value::{OPTION_DEPTH_MAX, OptionMessage, OptionValue};
use crate::sources::pool::{FieldKind, Symbol, TypeRef};

type Parsed<T> = Result<T, String>;

/// Parses a value of the type `message`.
pub(super) fn parse(
    linker: &Linker,
    scope: &mut Scope,
    message: MessageId,
    tokens: &[Token],
) -> Parsed<OptionMessage> {
    let text = linker.pool[scope.file].text.clone();
    let mut parser = Parser { linker, scope, text: text.as_bytes(), tokens, at: 0, depth: 0 };
    let mut value = OptionMessage::default();
    while !parser.is_done() {
        parser.field(message, &mut value)?;
    }
    parser.complete(message, &mut value)?;
    Ok(value)
}

struct Parser<'a> {
    linker: &'a Linker,
    scope: &'a mut Scope,
    text: &'a [u8],
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn field(&mut self, message: MessageId, into: &mut OptionMessage) -> Parsed<()> {
        if self.at(b"[") {
            let name = self.bracketed_name()?;
            if *self.linker.pool[message].full_name == *"google.protobuf.Any" {
                self.any(message, &name, into)?;
            } else {
                let field = self.extension(message, &name)?;
                self.values(field, into)?;
            }
        } else {
            let name = self.identifier("a field name")?;
            match self.named_field(message, &name) {
                Some(field) => self.values(field, into)?,
                None if self.linker.pool[message]
                    .reserved_names
                    .iter()
                    .any(|reserved| **reserved == *name) =>
                {
                    self.skip_value()?;
                }
                None => {
                    let message = &self.linker.pool[message].full_name;
                    return Err(format!("\"{message}\" has no field \"{name}\""));
                }
            }
        }
        let _ = self.eat(b";") || self.eat(b",");
        Ok(())
    }

    /// Parses the values after a name: one, or several in brackets.
    fn values(&mut self, field: FieldId, into: &mut OptionMessage) -> Parsed<()> {
        let pool = &self.linker.pool;
        let declared = &pool[field];
        let is_repeated = declared.is_repeated();
        if !is_repeated {
            if into.fields.contains_key(&declared.number) {
                return Err(format!("field \"{}\" is set twice", declared.name));
            }
            let oneof = declared.oneof.filter(|_| !declared.is_extension());
            let same_oneof = |other: FieldId| pool[other].oneof == oneof && !pool[other].is_extension();
            if oneof.is_some() && into.fields.values().any(|other| same_oneof(other.field)) {
                return Err(format!("another field of the oneof of \"{}\" is set", declared.name));
            }
        }
        if !self.eat(b":") && !declared.is_message() {
            return Err(format!("expected \":\" after \"{}\", found {}", declared.name, self.found()));
        }
        if is_repeated && self.eat(b"[") {
            if self.eat(b"]") {
                return Ok(());
            }
            loop {
                let value = self.value(field)?;
                into.add(pool, field, value);
                if self.eat(b"]") {
                    return Ok(());
                }
                self.expect(b",")?;
            }
        }
        let value = self.value(field)?;
        into.add(pool, field, value);
        Ok(())
    }

    fn value(&mut self, field: FieldId) -> Parsed<OptionValue> {
        let declared = &self.linker.pool[field];
        let kind = declared.kind.unwrap_or(FieldKind::Message);
        Ok(match kind {
            FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => {
                number_value(kind, self.signed(i32::MAX as u64)?)
            }
            FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => {
                number_value(kind, self.signed(i64::MAX as u64)?)
            }
            FieldKind::Uint32 | FieldKind::Fixed32 => number_value(kind, self.unsigned(u64::from(u32::MAX))?),
            FieldKind::Uint64 | FieldKind::Fixed64 => number_value(kind, self.unsigned(u64::MAX)?),
            FieldKind::Float | FieldKind::Double => float_value(kind, self.float()?),
            FieldKind::Bool => OptionValue::Varint(self.boolean()?),
            FieldKind::String | FieldKind::Bytes => OptionValue::Bytes(self.string()?.into()),
            FieldKind::Enum => {
                let TypeRef::Enum(declared) = declared.type_ref else {
                    return Err("unknown enum".to_owned());
                };
                if self.kind() == TokenKind::Identifier {
                    let name = self.identifier("an enum value")?;
                    let number = enum_number(&self.linker.pool, declared, &name).ok_or_else(|| {
                        format!("enum \"{}\" has no value \"{name}\"", self.linker.pool[declared].full_name)
                    })?;
                    return Ok(OptionValue::Varint(i64::from(number) as u64));
                }
                let number = self.signed(i32::MAX as u64)?;
                let declared = &self.linker.pool[declared];
                let is_known = declared.values.iter().any(|value| i64::from(value.number) as u64 == number);
                if declared.features.is_closed() && !is_known {
                    return Err(format!("enum \"{}\" has no value {}", declared.full_name, number as i64));
                }
                OptionValue::Varint(number)
            }
            FieldKind::Message | FieldKind::Group => {
                let TypeRef::Message(message) = declared.type_ref else {
                    return Err("unknown message".to_owned());
                };
                OptionValue::Message(self.message(message)?)
            }
        })
    }

    fn message(&mut self, message: MessageId) -> Parsed<OptionMessage> {
        self.depth += 1;
        if self.depth > OPTION_DEPTH_MAX {
            return Err(format!("messages nest more than {OPTION_DEPTH_MAX} levels deep"));
        }
        let end = self.delimiter()?;
        let mut value = OptionMessage::default();
        while !self.at(b"}") && !self.at(b">") {
            self.field(message, &mut value)?;
        }
        self.expect(end)?;
        self.complete(message, &mut value)?;
        self.depth -= 1;
        Ok(value)
    }

    fn delimiter(&mut self) -> Parsed<&'static [u8]> {
        if self.eat(b"<") {
            return Ok(b">");
        }
        self.expect(b"{")?;
        Ok(b"}")
    }

    /// Parses `[type.googleapis.com/shop.Order] { … }` in a `google.protobuf.Any`.
    fn any(&mut self, any: MessageId, name: &str, into: &mut OptionMessage) -> Parsed<()> {
        let (prefix, type_name) = name.rsplit_once('/').ok_or("expected a type URL in brackets")?;
        self.eat(b":");
        let root = self.scope.root;
        let found = matches!(prefix, "type.googleapis.com" | "type.googleprod.com")
            .then(|| self.linker.lookup(self.scope, &format!(".{type_name}"), root, SymbolFilter::Any));
        let Some(Ok(Symbol::Message(message))) = found else {
            return Err(format!("unknown type URL \"{name}\""));
        };
        let value = self.message(message)?;
        let value = encode::option_message(&self.linker.pool, &value);
        let fields = [(1, name.as_bytes().to_vec()), (2, value)];
        for (number, bytes) in fields {
            let field =
                self.linker.pool[any].fields.iter().find(|&&field| self.linker.pool[field].number == number);
            let &field = field.ok_or("google.protobuf.Any is not the well-known type")?;
            if into.fields.contains_key(&number) {
                return Err("the Any is set twice".to_owned());
            }
            into.add(&self.linker.pool, field, OptionValue::Bytes(bytes.into()));
        }
        Ok(())
    }

    fn extension(&mut self, message: MessageId, name: &str) -> Parsed<FieldId> {
        let unknown =
            || format!("\"{name}\" is not an extension of \"{}\"", self.linker.pool[message].full_name);
        // protoc starts in the scope of the extended message.
        let from = match self.linker.pool[message].node {
            Some(node) => self.linker.pool[node].parent.unwrap_or(node),
            None => self.scope.root,
        };
        match self.linker.lookup(self.scope, name, from, SymbolFilter::Any) {
            Ok(Symbol::Field(field)) if self.linker.pool[field].message == Some(message) => Ok(field),
            Ok(Symbol::Message(item)) => self.message_set_item(message, item).ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }

    /// Finds a MessageSet item by its type; items may be named that way.
    fn message_set_item(&self, set: MessageId, item: MessageId) -> Option<FieldId> {
        let pool = &self.linker.pool;
        let is_item = |&&field: &&FieldId| {
            pool[field].message == Some(set) && pool[field].type_ref == TypeRef::Message(item)
        };
        pool[set].options.as_deref().filter(|options| options.value.flag(1))?;
        pool[item].extensions.iter().find(is_item).copied()
    }

    /// Finds a field by name, or a group by the name of its message.
    fn named_field(&self, message: MessageId, name: &str) -> Option<FieldId> {
        let pool = &self.linker.pool;
        if let Some(field) = pool.field_named(message, name) {
            return Some(field);
        }
        let field = pool.field_named(message, &name.to_ascii_lowercase())?;
        let TypeRef::Message(group) = pool[field].type_ref else { return None };
        (pool[field].kind == Some(FieldKind::Group) && *pool[group].name == *name).then_some(field)
    }

    /// Checks that required fields are set, and normalises maps.
    fn complete(&self, message: MessageId, value: &mut OptionMessage) -> Parsed<()> {
        let pool = &self.linker.pool;
        for &field in &pool[message].required {
            let declared = &pool[field];
            if !value.fields.contains_key(&declared.number) {
                return Err(format!(
                    "field \"{}\" of \"{}\" is required",
                    declared.name, pool[message].full_name
                ));
            }
        }
        for field in value.fields.values_mut() {
            if let TypeRef::Message(entry) = pool[field.field].type_ref
                && pool[entry].is_map_entry
            {
                self.complete_map(entry, &mut field.values);
            }
        }
        Ok(())
    }

    /// Completes map entries with default keys and values, and sorts them by key. The last entry of a key wins.
    fn complete_map(&self, entry: MessageId, entries: &mut Vec<OptionValue>) {
        let pool = &self.linker.pool;
        let kind = pool[entry].fields.first().and_then(|&key| pool[key].kind);
        let mut sorted = BTreeMap::new();
        for mut value in entries.drain(..) {
            if let OptionValue::Message(value) = &mut value {
                for &field in &pool[entry].fields {
                    if !value.fields.contains_key(&pool[field].number) {
                        value.add(pool, field, zero(pool[field].kind));
                    }
                }
            }
            sorted.insert(sort_key(kind, key(&value)), value);
        }
        entries.extend(sorted.into_values());
    }

    fn bracketed_name(&mut self) -> Parsed<String> {
        self.expect(b"[")?;
        let mut name = String::new();
        while !self.at(b"]") {
            if self.is_done() {
                return Err("expected \"]\", found the end of the value".to_owned());
            }
            name.push_str(&String::from_utf8_lossy(self.current()));
            self.at += 1;
        }
        self.expect(b"]")?;
        Ok(name)
    }

    /// Skips the value of a reserved field.
    fn skip_value(&mut self) -> Parsed<()> {
        self.eat(b":");
        let mut depth = 0_usize;
        loop {
            if self.is_done() {
                return Err("expected a value, found the end of the value".to_owned());
            }
            if self.at(b"{") || self.at(b"<") || self.at(b"[") {
                depth += 1;
            } else if self.at(b"}") || self.at(b">") || self.at(b"]") {
                depth = depth.saturating_sub(1);
            }
            let is_sign = self.at(b"-");
            let is_string = self.kind() == TokenKind::String;
            self.at += 1;
            if depth == 0 && !is_sign && !(is_string && self.kind() == TokenKind::String) {
                return Ok(());
            }
        }
    }

    fn boolean(&mut self) -> Parsed<u64> {
        if self.kind() == TokenKind::Integer {
            return self.unsigned(1);
        }
        match self.identifier("\"true\" or \"false\"")?.as_str() {
            "true" | "True" | "t" => Ok(1),
            "false" | "False" | "f" => Ok(0),
            other => Err(format!("expected \"true\" or \"false\", found \"{other}\"")),
        }
    }

    fn signed(&mut self, max: u64) -> Parsed<u64> {
        let is_negative = self.eat(b"-");
        let value = self.unsigned(max + u64::from(is_negative))?;
        Ok(if is_negative { value.wrapping_neg() } else { value })
    }

    fn unsigned(&mut self, max: u64) -> Parsed<u64> {
        if self.kind() != TokenKind::Integer {
            return Err(format!("expected an integer, found {}", self.found()));
        }
        let value = literal::integer(self.current(), max);
        let value = value.ok_or_else(|| format!("integer out of range: {}", self.found()))?;
        self.at += 1;
        Ok(value)
    }

    fn float(&mut self) -> Parsed<f64> {
        let is_negative = self.eat(b"-");
        let text = self.current();
        let value = match self.kind() {
            TokenKind::Integer if text.len() > 1 && text[0] == b'0' => {
                return Err(format!("expected a decimal number, found {}", self.found()));
            }
            TokenKind::Integer | TokenKind::Float => literal::float(text),
            TokenKind::Identifier => match text.to_ascii_lowercase().as_slice() {
                b"inf" | b"infinity" => Some(f64::INFINITY),
                b"nan" => Some(f64::NAN),
                _ => None,
            },
            _ => None,
        };
        let value = value.ok_or_else(|| format!("expected a number, found {}", self.found()))?;
        self.at += 1;
        Ok(if is_negative { -value } else { value })
    }

    fn string(&mut self) -> Parsed<Vec<u8>> {
        if self.kind() != TokenKind::String {
            return Err(format!("expected a string, found {}", self.found()));
        }
        let mut value = Vec::new();
        while self.kind() == TokenKind::String {
            literal::unescape(self.current(), &mut value);
            self.at += 1;
        }
        Ok(value)
    }

    fn identifier(&mut self, expected: &str) -> Parsed<String> {
        if self.kind() != TokenKind::Identifier {
            return Err(format!("expected {expected}, found {}", self.found()));
        }
        let name = String::from_utf8_lossy(self.current()).into_owned();
        self.at += 1;
        Ok(name)
    }

    fn expect(&mut self, text: &[u8]) -> Parsed<()> {
        if self.eat(text) {
            return Ok(());
        }
        Err(format!("expected \"{}\", found {}", String::from_utf8_lossy(text), self.found()))
    }

    fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.at(text);
        self.at += usize::from(found);
        found
    }

    fn at(&mut self, text: &[u8]) -> bool {
        self.current() == text
    }

    fn is_done(&mut self) -> bool {
        self.current().is_empty()
    }

    fn found(&mut self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the value".to_owned(),
            _ => format!("\"{}\"", String::from_utf8_lossy(self.current())),
        }
    }

    fn kind(&mut self) -> TokenKind {
        self.skip_comments();
        self.tokens.get(self.at).map_or(TokenKind::End, |token| token.kind)
    }

    /// Returns the current token's text; empty at the end.
    fn current(&mut self) -> &'a [u8] {
        self.skip_comments();
        let token = self.tokens.get(self.at);
        token.and_then(|token| self.text.get(token.start as usize..token.end as usize)).unwrap_or_default()
    }

    /// Skips comments, which in the text format go from `#` to the end of the line.
    fn skip_comments(&mut self) {
        while let Some(token) = self.tokens.get(self.at)
            && self.text.get(token.start as usize) == Some(&b'#')
        {
            let line = token.line;
            while self.tokens.get(self.at).is_some_and(|token| token.line == line) {
                self.at += 1;
            }
        }
    }
}

fn zero(kind: Option<FieldKind>) -> OptionValue {
    match kind {
        Some(FieldKind::Double | FieldKind::Fixed64 | FieldKind::Sfixed64) => OptionValue::Fixed64(0),
        Some(FieldKind::Float | FieldKind::Fixed32 | FieldKind::Sfixed32) => OptionValue::Fixed32(0),
        Some(FieldKind::String | FieldKind::Bytes) => OptionValue::Bytes([].into()),
        Some(FieldKind::Message | FieldKind::Group) => OptionValue::Message(OptionMessage::default()),
        _ => OptionValue::Varint(0),
    }
}

fn key(entry: &OptionValue) -> Option<&OptionValue> {
    match entry {
        OptionValue::Message(entry) => entry.value(1),
        _ => None,
    }
}

/// Orders integers by value, strings by bytes.
fn sort_key(kind: Option<FieldKind>, key: Option<&OptionValue>) -> (i128, Vec<u8>) {
    let signed = |value: u64| i128::from(value as i64);
    let number = match (key, kind) {
        (Some(OptionValue::Bytes(bytes)), _) => return (0, bytes.to_vec()),
        (Some(OptionValue::Varint(value)), Some(FieldKind::Sint32 | FieldKind::Sint64)) => {
            signed(value >> 1) ^ -i128::from(value & 1)
        }
        (Some(OptionValue::Varint(value)), Some(FieldKind::Int32 | FieldKind::Int64))
        | (Some(OptionValue::Fixed64(value)), Some(FieldKind::Sfixed64)) => signed(*value),
        (Some(OptionValue::Fixed32(value)), Some(FieldKind::Sfixed32)) => i128::from(*value as i32),
        (Some(OptionValue::Fixed32(value)), _) => i128::from(*value),
        (Some(OptionValue::Varint(value) | OptionValue::Fixed64(value)), _) => i128::from(*value),
        _ => 0,
    };
    (number, Vec::new())
}
