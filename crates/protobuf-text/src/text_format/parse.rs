//! Parses text to the wire records of a message.

use std::str::FromStr;

use thalweg_protobuf::json::ParseOptions;
use thalweg_protobuf::printable::excerpt;
use thalweg_protobuf::wire::{Tag, WireType, put_tag, put_varint, zigzag};
use thalweg_protobuf::{EnumValue, Field, Kind, Message, MessageType, WellKnown};

use super::group;
use super::lex::{Lexer, Token};
use thalweg_protobuf::json::LocatedError;

/// Returns the wire records in the order of the text; `Any`s are encoded.
pub(super) fn parse(
    message_type: MessageType<'_>,
    text: &[u8],
    options: &ParseOptions,
) -> Result<Vec<u8>, LocatedError> {
    let mut parser = Parser { lexer: Lexer::new(text)?, options };
    parser.body(message_type, None, options.depth_max)
}

struct Parser<'t, 'o> {
    lexer: Lexer<'t>,
    options: &'o ParseOptions,
}

/// The fields of a message parsed so far.
#[derive(Default)]
struct SeenFields {
    /// Numbers of singular fields.
    fields: Vec<u32>,
    /// Names of oneofs, each with its set member.
    oneofs: Vec<(String, String)>,
}

/// The name before a value.
enum Name<'s> {
    Field(Field<'s>),
    /// The type URL in an `Any`.
    Any(String),
    Unknown,
}

impl Parser<'_, '_> {
    /// Parses fields up to `close`, which is consumed, or to the end.
    fn body(
        &mut self,
        message: MessageType<'_>,
        close: Option<char>,
        depth: usize,
    ) -> Result<Vec<u8>, LocatedError> {
        let mut wire = Vec::new();
        let mut seen = SeenFields::default();
        loop {
            match (self.lexer.peek(), close) {
                (Token::End, None) => return Ok(wire),
                (Token::End, Some(close)) => {
                    return Err(self.error_here(format!("unterminated message: expected `{close}`")));
                }
                (Token::Sign(sign), Some(close)) if sign == close => {
                    self.lexer.take()?;
                    return Ok(wire);
                }
                _ => {}
            }
            let at = self.lexer.at();
            match self.name(message)? {
                Name::Unknown => self.skip_value(depth)?,
                Name::Any(url) => {
                    seen.note_any(at, &wire)?;
                    self.any(message, &url, depth, &mut wire)
                        .map_err(|error| error.in_field(&format!("[{url}]")))?;
                }
                Name::Field(field) => {
                    if field.is_repeated() {
                        self.values(field, depth, &mut wire)
                    } else {
                        seen.note(field, at)?;
                        self.value(field, depth, &mut wire)
                    }
                    .map_err(|error| error.in_field(field.name()))?;
                }
            }
            self.check_len(&wire)?;
            if !self.lexer.eat(',')? {
                self.lexer.eat(';')?;
            }
        }
    }

    fn name<'s>(&mut self, message: MessageType<'s>) -> Result<Name<'s>, LocatedError> {
        let at = self.lexer.at();
        let (name, found) = match self.lexer.peek() {
            Token::Word(name) => {
                self.lexer.take()?;
                let field = message.field(name).or_else(|| group::named(message, name));
                (name.to_owned(), field)
            }
            Token::Sign('[') => {
                self.lexer.take()?;
                let name = self.lexer.bracketed()?;
                if name.contains('/') {
                    return Ok(Name::Any(name));
                }
                let field = message.schema().extension(&name).filter(|field| field.message() == message);
                (format!("[{name}]"), field)
            }
            Token::Number(_) => {
                return Err(self.error_here("expected a field name, found a number".to_owned()));
            }
            _ => {
                return Err(
                    self.error_here(format!("expected a field name, found {}", self.lexer.described()))
                );
            }
        };
        match found {
            Some(field) => Ok(Name::Field(field)),
            // The text may have been written when the field existed.
            None if self.options.ignore_unknown || message.is_reserved_name(&name) => Ok(Name::Unknown),
            None => Err(LocatedError::new(
                at,
                format!("{} has no field `{}`", message.full_name(), excerpt(&name)),
            )),
        }
    }

    fn any(
        &mut self,
        message: MessageType<'_>,
        url: &str,
        depth: usize,
        wire: &mut Vec<u8>,
    ) -> Result<(), LocatedError> {
        if message.well_known() != Some(WellKnown::Any) {
            return Err(self.error_here(format!("{} is not google.protobuf.Any", message.full_name())));
        }
        let Some(content_type) = message.schema().message_by_url(url) else {
            return Err(self.error_here("unknown type".to_owned()));
        };
        self.lexer.eat(':')?;
        let at = self.lexer.at();
        let records = self.braced(content_type, depth)?;
        let value = Message::decode(content_type, records)
            .map_err(|error| LocatedError::new(at, error.to_string()))?
            .as_ref()
            .encode_to_vec();
        put_bytes(1, url.as_bytes(), wire);
        put_bytes(2, &value, wire);
        Ok(())
    }

    /// Parses a value of a repeated field, or several in brackets.
    fn values(&mut self, field: Field<'_>, depth: usize, wire: &mut Vec<u8>) -> Result<(), LocatedError> {
        self.colon(field)?;
        if !self.lexer.eat('[')? {
            return self.bare_value(field, depth, wire);
        }
        if self.lexer.eat(']')? {
            return Ok(());
        }
        for index in 0.. {
            self.bare_value(field, depth, wire).map_err(|error| error.in_element(index))?;
            self.check_len(wire)?;
            if self.lexer.eat(']')? {
                break;
            }
            if !self.lexer.eat(',')? {
                return Err(self.error_here(format!("expected `,` or `]`, found {}", self.lexer.described())));
            }
        }
        Ok(())
    }

    fn value(&mut self, field: Field<'_>, depth: usize, wire: &mut Vec<u8>) -> Result<(), LocatedError> {
        self.colon(field)?;
        self.bare_value(field, depth, wire)
    }

    /// Parses the colon, which is optional before messages.
    fn colon(&mut self, field: Field<'_>) -> Result<(), LocatedError> {
        if self.lexer.eat(':')? || field.kind().is_message() {
            return Ok(());
        }
        Err(self.error_here(format!("expected `:`, found {}", self.lexer.described())))
    }

    fn bare_value(&mut self, field: Field<'_>, depth: usize, wire: &mut Vec<u8>) -> Result<(), LocatedError> {
        let Some(message) = field.message_type() else { return self.scalar(field, wire) };
        let records = self.braced(message, depth)?;
        if field.kind() == Kind::Group {
            put_tag(wire, Tag::new(field.number(), WireType::StartGroup));
            wire.extend_from_slice(&records);
            put_tag(wire, Tag::new(field.number(), WireType::EndGroup));
        } else {
            put_bytes(field.number(), &records, wire);
        }
        Ok(())
    }

    fn braced(&mut self, message: MessageType<'_>, depth: usize) -> Result<Vec<u8>, LocatedError> {
        let close = match self.lexer.peek() {
            Token::Sign('{') => '}',
            Token::Sign('<') => '>',
            _ => {
                let found = self.lexer.described();
                return Err(
                    self.error_here(format!("expected `{{` and a {}, found {found}", message.full_name()))
                );
            }
        };
        let depth = depth.checked_sub(1).ok_or_else(|| self.too_deep())?;
        self.lexer.take()?;
        self.body(message, Some(close), depth)
    }

    fn scalar(&mut self, field: Field<'_>, wire: &mut Vec<u8>) -> Result<(), LocatedError> {
        let at = self.lexer.at();
        let kind = field.kind();
        if matches!(kind, Kind::String | Kind::Bytes) {
            if !matches!(self.lexer.peek(), Token::Text(_)) {
                let found = self.lexer.described();
                return Err(self.error_here(format!("expected a quoted string, found {found}")));
            }
            let bytes = self.lexer.strings()?;
            if field.requires_utf8() && std::str::from_utf8(&bytes).is_err() {
                return Err(LocatedError::new(at, "the string is not UTF-8"));
            }
            put_bytes(field.number(), &bytes, wire);
            return Ok(());
        }
        let is_negative = self.lexer.eat('-')?;
        let (Token::Word(text) | Token::Number(text)) = self.lexer.peek() else {
            let found = self.lexer.described();
            return Err(
                self.error_here(format!("expected a value of type {}, found {found}", type_name(field)))
            );
        };
        let number = || integer(text).map(|number| if is_negative { -number } else { number });
        let written = match kind {
            Kind::Float => float::<f32>(text)
                .map(|value| Scalar::Fixed32(if is_negative { -value } else { value }.to_bits())),
            Kind::Double => float::<f64>(text)
                .map(|value| Scalar::Fixed64(if is_negative { -value } else { value }.to_bits())),
            Kind::Bool if is_negative => None,
            Kind::Bool => boolean(text).map(|value| Scalar::Varint(u64::from(value))),
            Kind::Enum => enum_number(field, text, number(), is_negative)
                .map(|number| Scalar::Varint(i64::from(number) as u64)),
            Kind::Int32 => i32_of(number()).map(|value| Scalar::Varint(i64::from(value) as u64)),
            Kind::Sint32 => i32_of(number()).map(|value| Scalar::Varint(zigzag(i64::from(value)))),
            Kind::Sfixed32 => i32_of(number()).map(|value| Scalar::Fixed32(value as u32)),
            Kind::Int64 => i64_of(number()).map(|value| Scalar::Varint(value as u64)),
            Kind::Sint64 => i64_of(number()).map(|value| Scalar::Varint(zigzag(value))),
            Kind::Sfixed64 => i64_of(number()).map(|value| Scalar::Fixed64(value as u64)),
            Kind::Uint32 => u32_of(number()).map(|value| Scalar::Varint(u64::from(value))),
            Kind::Fixed32 => u32_of(number()).map(Scalar::Fixed32),
            Kind::Uint64 => u64_of(number()).map(Scalar::Varint),
            Kind::Fixed64 => u64_of(number()).map(Scalar::Fixed64),
            // Already handled.
            Kind::String | Kind::Bytes | Kind::Message | Kind::Group => None,
        };
        let Some(written) = written else {
            let sign = if is_negative { "-" } else { "" };
            let problem = format!("`{sign}{}` is not a valid {}", excerpt(text), type_name(field));
            return Err(LocatedError::new(at, problem));
        };
        self.lexer.take()?;
        written.put(field.number(), wire);
        Ok(())
    }

    /// Skips the value of an unknown field.
    fn skip_value(&mut self, depth: usize) -> Result<(), LocatedError> {
        self.lexer.eat(':')?;
        let depth = depth.checked_sub(1).ok_or_else(|| self.too_deep())?;
        match self.lexer.peek() {
            Token::Sign('[') => {
                self.lexer.take()?;
                while !self.lexer.eat(']')? {
                    self.skip_value(depth)?;
                    self.lexer.eat(',')?;
                }
            }
            Token::Sign(open @ ('{' | '<')) => {
                let close = if open == '{' { '}' } else { '>' };
                self.lexer.take()?;
                while !self.lexer.eat(close)? {
                    match self.lexer.peek() {
                        Token::Sign('[') => {
                            self.lexer.take()?;
                            self.lexer.bracketed()?;
                        }
                        Token::Word(_) | Token::Number(_) => drop(self.lexer.take()?),
                        _ => {
                            let found = self.lexer.described();
                            return Err(self.error_here(format!("expected a field name, found {found}")));
                        }
                    }
                    self.skip_value(depth)?;
                    if !self.lexer.eat(',')? {
                        self.lexer.eat(';')?;
                    }
                }
            }
            Token::Text(_) => drop(self.lexer.strings()?),
            _ => {
                self.lexer.eat('-')?;
                match self.lexer.peek() {
                    Token::Word(_) | Token::Number(_) => drop(self.lexer.take()?),
                    _ => {
                        let found = self.lexer.described();
                        return Err(self.error_here(format!("expected a value, found {found}")));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_len(&self, wire: &[u8]) -> Result<(), LocatedError> {
        if wire.len() <= self.options.len_max {
            return Ok(());
        }
        Err(LocatedError::too_long(self.lexer.at(), self.options.len_max))
    }

    fn error_here(&self, problem: String) -> LocatedError {
        LocatedError::new(self.lexer.at(), problem)
    }

    fn too_deep(&self) -> LocatedError {
        self.error_here(format!("messages are nested more than {} levels deep", self.options.depth_max))
    }
}

impl SeenFields {
    /// Records a singular field. Fails if it or another member of its oneof is set.
    fn note(&mut self, field: Field<'_>, at: usize) -> Result<(), LocatedError> {
        if self.fields.contains(&field.number()) {
            return Err(LocatedError::new(at, "duplicate field").in_field(field.name()));
        }
        if let Some(oneof) = field.oneof() {
            if let Some((_, member)) = self.oneofs.iter().find(|(name, _)| name == oneof.name()) {
                let problem = format!("{member} is already set, in the same oneof {}", oneof.name());
                return Err(LocatedError::new(at, problem).in_field(field.name()));
            }
            self.oneofs.push((oneof.name().to_owned(), field.name().to_owned()));
        }
        self.fields.push(field.number());
        Ok(())
    }

    /// Records the content of an `Any`, which must be its only field.
    fn note_any(&mut self, at: usize, wire: &[u8]) -> Result<(), LocatedError> {
        self.fields.extend([1, 2]);
        if wire.is_empty() { Ok(()) } else { Err(LocatedError::new(at, "the Any already has a value")) }
    }
}

/// A number in its wire form.
enum Scalar {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
}

impl Scalar {
    fn put(self, number: u32, wire: &mut Vec<u8>) {
        match self {
            Scalar::Varint(value) => {
                put_tag(wire, Tag::new(number, WireType::Varint));
                put_varint(wire, value);
            }
            Scalar::Fixed32(value) => {
                put_tag(wire, Tag::new(number, WireType::Fixed32));
                wire.extend_from_slice(&value.to_le_bytes());
            }
            Scalar::Fixed64(value) => {
                put_tag(wire, Tag::new(number, WireType::Fixed64));
                wire.extend_from_slice(&value.to_le_bytes());
            }
        }
    }
}

fn put_bytes(number: u32, bytes: &[u8], wire: &mut Vec<u8>) {
    put_tag(wire, Tag::new(number, WireType::Len));
    put_varint(wire, bytes.len() as u64);
    wire.extend_from_slice(bytes);
}

fn type_name(field: Field<'_>) -> String {
    match field.enum_type() {
        Some(declared) => declared.full_name().to_owned(),
        None => field.kind().to_string(),
    }
}

/// Parses a decimal, a hex number with `0x`, or an octal with a leading zero.
fn integer(text: &str) -> Option<i128> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok()
}

fn i32_of(number: Option<i128>) -> Option<i32> {
    number?.try_into().ok()
}

fn i64_of(number: Option<i128>) -> Option<i64> {
    number?.try_into().ok()
}

fn u32_of(number: Option<i128>) -> Option<u32> {
    number?.try_into().ok()
}

fn u64_of(number: Option<i128>) -> Option<u64> {
    number?.try_into().ok()
}

/// Parses a decimal, optionally with an `f` suffix, or a word; hex and octal floats are invalid.
fn float<F: FromStr>(text: &str) -> Option<F> {
    let is_word = ["inf", "infinity", "nan"].iter().any(|word| text.eq_ignore_ascii_case(word));
    let digits = if is_word { text } else { text.strip_suffix(['f', 'F']).unwrap_or(text) };
    let is_decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let is_octal =
        digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = digits.bytes().all(is_decimal) && !is_octal;
    if is_word || is_number { digits.parse().ok() } else { None }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "t" => Some(true),
        "false" | "False" | "f" => Some(false),
        _ => match integer(text)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
    }
}

/// Parses an enum value by name or number; a closed enum accepts only known numbers.
fn enum_number(field: Field<'_>, text: &str, number: Option<i128>, is_negative: bool) -> Option<i32> {
    let declared = field.enum_type()?;
    match number {
        Some(number) => {
            let number = i32::try_from(number).ok()?;
            (!declared.is_closed() || declared.value_by_number(number).is_some()).then_some(number)
        }
        None if is_negative => None,
        None => declared.value(text).map(EnumValue::number),
    }
}
