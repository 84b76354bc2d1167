//! Assembles bytes from text.

use thalweg_protobuf::wire::{NUMBER_MAX, WireType};

use super::lex::{AssembleError, Lexer, Position, TokenKind};
use crate::dissect::varint::wire_type_name;

/// Maximum nesting depth of braces.
const DEPTH_MAX: usize = 1000;
/// Maximum number of excess bytes of a varint.
const EXCESS_MAX: usize = 100;
/// The wire types that have names.
const WIRE_TYPES: [WireType; 6] = [
    WireType::Varint,
    WireType::Fixed64,
    WireType::Len,
    WireType::StartGroup,
    WireType::EndGroup,
    WireType::Fixed32,
];

/// Assembles the bytes that `text` describes.
pub fn assemble(text: &str) -> Result<Vec<u8>, AssembleError> {
    let mut lexer = Lexer::new(text);
    let mut assembler = Assembler::default();
    while let Some(token) = lexer.next()? {
        assembler.position = token.position;
        match token.kind {
            TokenKind::Open => assembler.open(Brace::Len)?,
            TokenKind::OpenGroup => assembler.open_group()?,
            TokenKind::Close => assembler.close()?,
            TokenKind::Bytes(bytes) => assembler.bytes(&bytes)?,
            TokenKind::Word(word) => assembler.word(&word)?,
        }
    }
    assembler.end()
}

/// The meaning of a brace.
#[derive(Clone, Copy, Debug)]
enum Brace {
    Len,
    Group(u32),
    Grpc(u8),
}

/// An open brace.
#[derive(Debug)]
struct OpenBrace {
    brace: Brace,
    position: Position,
    /// Excess bytes of its length.
    excess: usize,
    /// The output before it.
    before: Vec<u8>,
}

/// `N:`, whose wire type is determined by the following value.
#[derive(Clone, Copy, Debug)]
struct OpenTag {
    number: u32,
    excess: usize,
    position: Position,
}

#[derive(Debug, Default)]
struct Assembler {
    /// Output of the innermost brace.
    output: Vec<u8>,
    open_braces: Vec<OpenBrace>,
    tag: Option<OpenTag>,
    long_form: Option<(usize, Position)>,
    /// `grpc:FLAGS`, which a brace must follow.
    grpc: Option<(u8, Position)>,
    position: Position,
}

impl Assembler {
    fn open(&mut self, brace: Brace) -> Result<(), AssembleError> {
        if self.open_braces.len() >= DEPTH_MAX {
            return Err(self.position.error(format!("more than {DEPTH_MAX} braces are open")));
        }
        let brace = match (self.grpc.take(), brace) {
            (Some((flags, _)), Brace::Len) => Brace::Grpc(flags),
            _ => brace,
        };
        let excess = self.long_form.take().map_or(0, |(excess, _)| excess);
        if let Brace::Len = brace {
            self.announce(WireType::Len);
        }
        let before = std::mem::take(&mut self.output);
        self.open_braces.push(OpenBrace { brace, position: self.position, excess, before });
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), AssembleError> {
        self.forbid_long_form()?;
        self.forbid_grpc()?;
        let Some(tag) = self.tag else {
            return Err(self.position.error("expected a field number before the group, such as `3: !{`"));
        };
        self.announce(WireType::StartGroup);
        self.open(Brace::Group(tag.number))
    }

    fn close(&mut self) -> Result<(), AssembleError> {
        // Before a group's closing brace, it applies to the end tag.
        let is_group = matches!(self.open_braces.last(), Some(OpenBrace { brace: Brace::Group(_), .. }));
        let end_excess = if is_group { self.long_form.take().map_or(0, |(excess, _)| excess) } else { 0 };
        self.complete()?;
        let Some(open_brace) = self.open_braces.pop() else {
            return Err(self.position.error("closing brace without an open one"));
        };
        let inner = std::mem::replace(&mut self.output, open_brace.before);
        match open_brace.brace {
            Brace::Len => put_varint(&mut self.output, inner.len() as u64, open_brace.excess),
            Brace::Group(_) => {}
            Brace::Grpc(flags) => {
                let length = u32::try_from(inner.len())
                    .map_err(|_| open_brace.position.error("a gRPC message is limited to 4 GiB"))?;
                self.output.push(flags);
                self.output.extend_from_slice(&length.to_be_bytes());
            }
        }
        self.output.extend_from_slice(&inner);
        if let Brace::Group(number) = open_brace.brace {
            put_tag(&mut self.output, number, WireType::EndGroup as u8, end_excess);
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), AssembleError> {
        if self.tag.is_some() {
            return Err(self.position.error(
                "expected braces around bytes after a tag, such as {…}; without braces, use a tag with its type, such \
                 as `1:LEN`",
            ));
        }
        self.forbid_long_form()?;
        self.forbid_grpc()?;
        self.output.extend_from_slice(bytes);
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), AssembleError> {
        self.forbid_grpc()?;
        match word.split_once(':') {
            Some(("long-form", excess)) => {
                self.forbid_long_form()?;
                let excess = excess.parse().ok().filter(|excess| *excess <= EXCESS_MAX).ok_or_else(|| {
                    self.position
                        .error(format!("expected a number of bytes up to {EXCESS_MAX} after `long-form:`"))
                })?;
                self.long_form = Some((excess, self.position));
            }
            Some(("grpc", flags)) => {
                self.complete()?;
                let flags = flags.parse().map_err(|_| {
                    self.position.error("expected the flags as a number after `grpc:`, such as `grpc:0 {…}`")
                })?;
                self.grpc = Some((flags, self.position));
            }
            Some((number, wire_type)) => self.tag(number, wire_type)?,
            None => self.value(word)?,
        }
        Ok(())
    }

    fn tag(&mut self, number: &str, wire_type: &str) -> Result<(), AssembleError> {
        if let Some(OpenTag { number, .. }) = self.tag {
            return Err(self
                .position
                .error(format!("expected the value of field {number}, found another tag")));
        }
        let number = Number::parse(number)
            .and_then(|number| u64::try_from(number.magnitude).ok().filter(|_| !number.is_negative))
            .filter(|number| (1..=u64::from(NUMBER_MAX)).contains(number))
            .ok_or_else(|| {
                self.position.error(format!("invalid field number `{number}`; expected 1 to {NUMBER_MAX}"))
            })? as u32;
        let excess = self.long_form.take().map_or(0, |(excess, _)| excess);
        if wire_type.is_empty() {
            self.tag = Some(OpenTag { number, excess, position: self.position });
            return Ok(());
        }
        let by_name =
            WIRE_TYPES.into_iter().find(|known| wire_type_name(*known) == wire_type).map(|known| known as u8);
        let by_number = || wire_type.parse().ok().filter(|number| *number < 8);
        let Some(bits) = by_name.or_else(by_number) else {
            let names = WIRE_TYPES.map(wire_type_name).join(", ");
            return Err(self.position.error(format!(
                "invalid wire type `{wire_type}`; expected {names}, 0 to 7, or nothing after the colon"
            )));
        };
        put_tag(&mut self.output, number, bits, excess);
        Ok(())
    }

    /// Parses a number, or a word for one.
    fn value(&mut self, word: &str) -> Result<(), AssembleError> {
        let unknown = || {
            format!("expected a number, a tag (`1:`), a string (\"…\") or bytes in hex (`…`), found `{word}`")
        };
        let value = Scalar::parse(word).ok_or_else(|| self.position.error(unknown()))?;
        let value = value.map_err(|what| self.position.error(format!("`{word}` {what}")))?;
        match value {
            Scalar::Varint(number) => {
                let excess = self.long_form.take().map_or(0, |(excess, _)| excess);
                self.announce(WireType::Varint);
                put_varint(&mut self.output, number, excess);
            }
            Scalar::I32(bits) => {
                self.forbid_long_form()?;
                self.announce(WireType::Fixed32);
                self.output.extend_from_slice(&bits.to_le_bytes());
            }
            Scalar::I64(bits) => {
                self.forbid_long_form()?;
                self.announce(WireType::Fixed64);
                self.output.extend_from_slice(&bits.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Writes the pending tag, once the wire type of its value is known.
    fn announce(&mut self, wire_type: WireType) {
        if let Some(OpenTag { number, excess, .. }) = self.tag.take() {
            put_tag(&mut self.output, number, wire_type as u8, excess);
        }
    }

    fn forbid_long_form(&self) -> Result<(), AssembleError> {
        match self.long_form {
            Some((_, position)) => {
                Err(position.error("expected a tag, whole number or length after `long-form:`"))
            }
            None => Ok(()),
        }
    }

    fn forbid_grpc(&self) -> Result<(), AssembleError> {
        match self.grpc {
            Some((_, position)) => Err(position.error("expected a brace, such as `grpc:0 {…}`")),
            None => Ok(()),
        }
    }

    /// Checks that nothing is pending.
    fn complete(&self) -> Result<(), AssembleError> {
        if let Some(OpenTag { number, position, .. }) = self.tag {
            return Err(position.error(format!("field {number} has no value")));
        }
        self.forbid_long_form()?;
        self.forbid_grpc()
    }

    fn end(self) -> Result<Vec<u8>, AssembleError> {
        self.complete()?;
        match self.open_braces.last() {
            Some(open_brace) => Err(open_brace.position.error("this brace is not closed")),
            None => Ok(self.output),
        }
    }
}

/// An integer as written.
struct Number {
    is_negative: bool,
    magnitude: u128,
}

impl Number {
    fn parse(word: &str) -> Option<Self> {
        let (is_negative, digits) = match word.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, word),
        };
        let (digits, radix) = match digits.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None => (digits, 10),
        };
        // `from_str_radix` accepts a sign.
        let magnitude = u128::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))?;
        Some(Self { is_negative, magnitude })
    }

    /// Returns the two's complement of `width` bits, if the number fits a signed or unsigned integer of that width.
    fn bits(&self, width: u32) -> Option<u64> {
        let limit = 1_u128 << width;
        match self.is_negative {
            false if self.magnitude < limit => Some(self.magnitude as u64),
            true if self.magnitude <= limit / 2 => Some((limit - self.magnitude) as u64),
            _ => None,
        }
    }

    /// Returns the zigzag encoding, as for `sint64`.
    fn zigzag(&self) -> Option<u64> {
        const LIMIT: u128 = 1 << 63;
        match self.is_negative {
            false if self.magnitude < LIMIT => Some((self.magnitude as u64) << 1),
            true if self.magnitude == 0 => Some(0),
            true if self.magnitude <= LIMIT => Some((((self.magnitude - 1) as u64) << 1) | 1),
            _ => None,
        }
    }
}

/// A number in its wire form.
enum Scalar {
    Varint(u64),
    I32(u32),
    I64(u64),
}

impl Scalar {
    /// Returns `None` if the word is not a number, and an error if the number is out of range.
    fn parse(word: &str) -> Option<Result<Self, &'static str>> {
        match word {
            "true" => return Some(Ok(Scalar::Varint(1))),
            "false" => return Some(Ok(Scalar::Varint(0))),
            "inf32" => return Some(Ok(Scalar::I32(f32::INFINITY.to_bits()))),
            "-inf32" => return Some(Ok(Scalar::I32(f32::NEG_INFINITY.to_bits()))),
            "inf64" => return Some(Ok(Scalar::I64(f64::INFINITY.to_bits()))),
            "-inf64" => return Some(Ok(Scalar::I64(f64::NEG_INFINITY.to_bits()))),
            _ => {}
        }
        if !word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return None;
        }
        let (stem, suffix) =
            match (word.strip_suffix("i32"), word.strip_suffix("i64"), word.strip_suffix('z')) {
                (Some(stem), ..) => (stem, "i32"),
                (_, Some(stem), _) => (stem, "i64"),
                (.., Some(stem)) => (stem, "z"),
                _ => (word, ""),
            };
        let is_float = stem.contains('.') || stem.contains('e') && !stem.contains("0x");
        if is_float && suffix != "z" {
            return Some(Ok(match suffix {
                "i32" => stem.parse().map(|float: f32| Scalar::I32(float.to_bits())).ok()?,
                _ => stem.parse().map(|float: f64| Scalar::I64(float.to_bits())).ok()?,
            }));
        }
        let number = Number::parse(stem)?;
        Some(match suffix {
            "i32" => number.bits(32).map(|bits| Scalar::I32(bits as u32)).ok_or("does not fit in 4 bytes"),
            "i64" => number.bits(64).map(Scalar::I64).ok_or("does not fit in 8 bytes"),
            "z" => number.zigzag().map(Scalar::Varint).ok_or("does not fit in sint64"),
            _ => number.bits(64).map(Scalar::Varint).ok_or("does not fit in 64 bits"),
        })
    }
}

fn put_tag(output: &mut Vec<u8>, number: u32, wire_type: u8, excess: usize) {
    put_varint(output, u64::from(number) << 3 | u64::from(wire_type), excess);
}

/// Appends a varint with `excess` more bytes than necessary.
fn put_varint(output: &mut Vec<u8>, mut value: u64, excess: usize) {
    while value > 0x7f {
        output.push(value as u8 | 0x80);
        value >>= 7;
    }
    if excess == 0 {
        return output.push(value as u8);
    }
    output.push(value as u8 | 0x80);
    output.extend(std::iter::repeat_n(0x80, excess - 1));
    output.push(0);
}
