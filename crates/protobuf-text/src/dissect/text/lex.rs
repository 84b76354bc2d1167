//! Tokens of the text.

/// Error for invalid text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct AssembleError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The problem.
    pub what: String,
}

/// A token and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) position: Position,
    pub(super) kind: TokenKind,
}

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Default for Position {
    fn default() -> Self {
        Position { line: 1, column: 1 }
    }
}

impl Position {
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
    /// The bytes of a string or hex literal.
    Bytes(Vec<u8>),
    /// Any other word: numbers, tags, `long-form:N`.
    Word(String),
}

/// Reads one token at a time.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, position: Position { line: 1, column: 1 } }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        self.position = match c {
            '\n' => Position { line: self.position.line + 1, column: 1 },
            _ => Position { column: self.position.column + 1, ..self.position },
        };
        Some(c)
    }

    /// Returns the next token, or `None` at the end.
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
        let position = self.position;
        let Some(first) = self.bump() else { return Ok(None) };
        let kind = match first {
            '{' => TokenKind::Open,
            '}' => TokenKind::Close,
            '!' => match self.bump() {
                Some('{') => TokenKind::OpenGroup,
                _ => return Err(position.error("expected `{` after `!`")),
            },
            '"' => TokenKind::Bytes(self.string(position)?),
            '`' => TokenKind::Bytes(self.hex(position)?),
            _ => {
                let mut word = String::from(first);
                while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !"{}!\"`#".contains(*c)) {
                    word.push(c);
                    self.bump();
                }
                TokenKind::Word(word)
            }
        };
        Ok(Some(Token { position, kind }))
    }

    /// Reads a string after its opening quote.
    fn string(&mut self, start: Position) -> Result<Vec<u8>, AssembleError> {
        let mut bytes = Vec::new();
        loop {
            let position = self.position;
            match self.bump() {
                None => return Err(start.error("unterminated string; expected a closing `\"`")),
                Some('"') => return Ok(bytes),
                Some('\\') => bytes.push(self.escape(position)?),
                Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
    }

    fn escape(&mut self, position: Position) -> Result<u8, AssembleError> {
        match self.bump() {
            Some('n') => Ok(b'\n'),
            Some('r') => Ok(b'\r'),
            Some('t') => Ok(b'\t'),
            Some(c @ ('"' | '\\' | '\'')) => Ok(c as u8),
            Some('x') => {
                let mut digit = || self.bump().and_then(|c| c.to_digit(16));
                match (digit(), digit()) {
                    (Some(high), Some(low)) => Ok((16 * high + low) as u8),
                    _ => Err(position.error("expected two hex digits after `\\x`")),
                }
            }
            Some(c) => {
                Err(position.error(format!("unknown escape `\\{c}`; use \\n \\r \\t \\\" \\\\ \\xNN")))
            }
            None => Err(position.error("unexpected end of the text")),
        }
    }

    /// Reads hex bytes after the opening backtick.
    fn hex(&mut self, start: Position) -> Result<Vec<u8>, AssembleError> {
        let mut bytes = Vec::new();
        let mut high = None;
        loop {
            let position = self.position;
            match (self.bump(), high) {
                (None, _) => return Err(start.error("unterminated bytes; expected a closing backtick")),
                (Some('`'), None) => return Ok(bytes),
                (Some('`'), Some(_)) => {
                    return Err(position.error("expected two hex digits per byte, found one"));
                }
                (Some(c), _) if c.is_whitespace() => {}
                (Some(c), _) => {
                    let digit = c
                        .to_digit(16)
                        .ok_or_else(|| position.error(format!("expected a hex digit, found `{c}`")))?
                        as u8;
                    match high.take() {
                        Some(high) => bytes.push(16 * high + digit),
                        None => high = Some(digit),
                    }
                }
            }
        }
    }
}
