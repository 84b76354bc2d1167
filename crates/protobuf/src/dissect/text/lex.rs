//! Words of the text.

use super::AssembleError;

/// A word, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) place: Place,
    pub(super) kind: TokenKind,
}

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) fn error(self, what: impl Into<String>) -> AssembleError {
        AssembleError { line: self.line, column: self.column, what: what.into() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// `{`
    Open,
    /// `!{`
    OpenGroup,
    /// `}`
    Close,
    /// What quotes and backticks stand for.
    Bytes(Vec<u8>),
    /// Anything else: numbers, tags, `long-form:N`.
    Word(String),
}

/// Reads one word after another.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    place: Place,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, place: Place { line: 1, column: 1 } }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.place = match c {
            '\n' => Place { line: self.place.line + 1, column: 1 },
            _ => Place { column: self.place.column + 1, ..self.place },
        };
        Some(c)
    }

    /// The next word; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token>, AssembleError> {
        while let Some(c) = self.peek() {
            match c {
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                _ if c.is_whitespace() => drop(self.bump()),
                _ => break,
            }
        }
        let place = self.place;
        let Some(first) = self.bump() else { return Ok(None) };
        let kind = match first {
            '{' => TokenKind::Open,
            '}' => TokenKind::Close,
            '!' => match self.bump() {
                Some('{') => TokenKind::OpenGroup,
                _ => return Err(place.error("a group begins with `!{`")),
            },
            '"' => TokenKind::Bytes(self.string(place)?),
            '`' => TokenKind::Bytes(self.hex(place)?),
            _ => {
                let mut word = String::from(first);
                while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !"{}!\"`#".contains(*c)) {
                    word.push(c);
                    self.bump();
                }
                TokenKind::Word(word)
            }
        };
        Ok(Some(Token { place, kind }))
    }

    /// Behind a quote, up to the next one.
    fn string(&mut self, begun: Place) -> Result<Vec<u8>, AssembleError> {
        let mut bytes = Vec::new();
        loop {
            let place = self.place;
            match self.bump() {
                None => return Err(begun.error("this string does not end: `\"` is missing")),
                Some('"') => return Ok(bytes),
                Some('\\') => bytes.push(self.escape(place)?),
                Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn escape(&mut self, place: Place) -> Result<u8, AssembleError> {
        match self.bump() {
            Some('n') => Ok(b'\n'),
            Some('r') => Ok(b'\r'),
            Some('t') => Ok(b'\t'),
            Some(c @ ('"' | '\\' | '\'')) => Ok(c as u8),
            Some('x') => {
                let mut digit = || self.bump().and_then(|c| c.to_digit(16));
                match (digit(), digit()) {
                    (Some(high), Some(low)) => Ok((16 * high + low) as u8),
                    _ => Err(place.error("`\\x` wants two hex digits")),
                }
            }
            Some(c) => {
                Err(place.error(format!("`\\{c}` is not known; there are \\n \\r \\t \\\" \\\\ \\xNN")))
            }
            None => Err(place.error("the text ends here")),
        }
    }

    /// Behind a backtick, up to the next one.
    fn hex(&mut self, begun: Place) -> Result<Vec<u8>, AssembleError> {
        let mut bytes = Vec::new();
        let mut high = None;
        loop {
            let place = self.place;
            match (self.bump(), high) {
                (None, _) => return Err(begun.error("these bytes do not end: a backtick is missing")),
                (Some('`'), None) => return Ok(bytes),
                (Some('`'), Some(_)) => {
                    return Err(place.error("a byte has two hex digits, and this is the first one only"));
                }
                (Some(c), _) if c.is_whitespace() => {}
                (Some(c), _) => {
                    let digit =
                        c.to_digit(16).ok_or_else(|| place.error(format!("`{c}` is no hex digit")))? as u8;
                    match high.take() {
                        Some(high) => bytes.push(16 * high + digit),
                        None => high = Some(digit),
                    }
                }
            }
        }
    }
}
