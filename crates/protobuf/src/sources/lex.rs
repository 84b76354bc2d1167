//! Tokens of a `.proto` file, and the comments between them.

use super::comments::{CommentCollector, Comments};
use super::error::Position;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    /// Before the first token.
    Start,
    /// After the last token.
    End,
    Identifier,
    Integer,
    Float,
    String,
    Symbol,
}

/// A token. Columns count bytes from 0, and a tab advances to the next multiple of eight, as in protoc's source info.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) end_column: u32,
}

impl Token {
    pub(super) fn position(self) -> Position {
        Position { line: self.line, column: self.column }
    }
}

/// A lexical error: the tokens around it are still usable.
#[derive(Debug)]
pub(super) struct LexError {
    pub(super) at: Position,
    pub(super) message: String,
}

/// Reads one token at a time. `current` is the parser's lookahead.
#[derive(Debug)]
pub(super) struct Lexer<'s> {
    source: &'s [u8],
    at: usize,
    line: u32,
    column: u32,
    pub(super) current: Token,
    pub(super) previous: Token,
    pub(super) errors: Vec<LexError>,
}

enum CommentStart {
    Line,
    Block,
    /// A slash that does not start a comment; it is the current token.
    Slash,
    None,
}

const TAB_WIDTH: u32 = 8;

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        let start = Token { kind: TokenKind::Start, start: 0, end: 0, line: 0, column: 0, end_column: 0 };
        let source = source.as_bytes();
        Lexer { source, at: 0, line: 0, column: 0, current: start, previous: start, errors: Vec::new() }
    }

    pub(super) fn text(&self, token: Token) -> &'s [u8] {
        &self.source[token.start as usize..token.end as usize]
    }

    /// Advances to the next token and ignores comments.
    pub(super) fn next(&mut self) {
        self.previous = self.current;
        while self.at < self.source.len() {
            self.skip_while(is_whitespace);
            match self.comment_start() {
                CommentStart::Line => self.line_comment(None),
                CommentStart::Block => self.block_comment(None),
                CommentStart::Slash => return,
                CommentStart::None if self.at == self.source.len() => break,
                CommentStart::None if is_control(self.peek()) => {
                    self.error("invalid control character");
                    self.skip_while(is_control);
                }
                CommentStart::None => return self.token(),
            }
        }
        let end = self.at as u32;
        let (line, column) = (self.line, self.column);
        self.current = Token { kind: TokenKind::End, start: end, end, line, column, end_column: column };
    }

    /// Advances to the next token and collects the comments on the way.
    pub(super) fn next_with_comments(&mut self) -> Comments {
        let mut collector = CommentCollector::default();
        let mut last_line = Some(self.line);
        let mut trailing_end = None;
        if self.current.kind == TokenKind::Start {
            if self.source.starts_with(BYTE_ORDER_MARK) {
                for _ in BYTE_ORDER_MARK {
                    self.bump();
                }
            }
            collector.detach_from_previous();
            last_line = None;
        } else {
            // A comment on the same line belongs to the preceding token.
            self.skip_while(is_blank);
            match self.comment_start() {
                CommentStart::Line => {
                    trailing_end = Some(self.line);
                    self.line_comment(Some(collector.line_comment()));
                    collector.flush();
                }
                CommentStart::Block => {
                    self.block_comment(Some(collector.block_comment()));
                    trailing_end = Some(self.line);
                    self.skip_while(is_blank);
                    collector.flush();
                }
                CommentStart::Slash => return collector.finish(),
                CommentStart::None if self.eat(b'\n') => {}
                CommentStart::None => {
                    self.next();
                    return collector.finish();
                }
            }
        }
        loop {
            self.skip_while(is_blank);
            match self.comment_start() {
                CommentStart::Line => self.line_comment(Some(collector.line_comment())),
                CommentStart::Block => {
                    self.block_comment(Some(collector.block_comment()));
                    self.skip_while(is_blank);
                    self.eat(b'\n');
                }
                CommentStart::Slash => return collector.finish(),
                CommentStart::None if self.eat(b'\n') => {
                    // A blank line ends a comment, and later comments do not belong to the preceding token.
                    collector.flush();
                    collector.detach_from_previous();
                }
                CommentStart::None => {
                    self.next();
                    let ended = self.current.kind == TokenKind::End;
                    if ended || matches!(self.text(self.current), b"}" | b"]" | b")") {
                        // There is no following declaration for the comment to lead.
                        collector.flush();
                    }
                    if !ended && (last_line == Some(self.line) || trailing_end == Some(self.line)) {
                        collector.detach_ambiguous();
                    }
                    return collector.finish();
                }
            }
        }
    }

    fn token(&mut self) {
        let (start, line, column) = (self.at, self.line, self.column);
        let first = self.peek();
        self.bump();
        let kind = match first {
            b'0'..=b'9' => self.number(first == b'0', false),
            b'.' if self.peek().is_ascii_digit() => {
                self.bump();
                let previous = self.previous;
                if previous.kind == TokenKind::Identifier
                    && (previous.line, previous.end_column) == (line, column)
                {
                    self.error_at(
                        line,
                        column,
                        "expected a space between the identifier and the decimal point",
                    );
                }
                self.number(false, true)
            }
            b'"' | b'\'' => {
                self.string(first);
                TokenKind::String
            }
            _ if is_letter(first) => {
                self.skip_while(|byte| is_letter(byte) || byte.is_ascii_digit());
                TokenKind::Identifier
            }
            _ => {
                if !first.is_ascii() {
                    self.error_at(line, column, "expected ASCII text outside of strings and comments");
                    // Skip the rest of the character.
                    self.skip_while(|byte| byte & 0xc0 == 0x80);
                }
                TokenKind::Symbol
            }
        };
        let (start, end, end_column) = (start as u32, self.at as u32, self.column);
        self.current = Token { kind, start, end, line, column, end_column };
    }

    fn number(&mut self, leading_zero: bool, leading_dot: bool) -> TokenKind {
        let mut is_float = leading_dot;
        if leading_zero && (self.eat(b'x') || self.eat(b'X')) {
            self.one_or_more(|byte| byte.is_ascii_hexdigit(), "expected hex digits after \"0x\"");
        } else if leading_zero && self.peek().is_ascii_digit() {
            self.skip_while(is_octal);
            if self.peek().is_ascii_digit() {
                self.error("numbers with a leading zero are octal");
                self.skip_while(|byte| byte.is_ascii_digit());
            }
        } else {
            self.skip_while(|byte| byte.is_ascii_digit());
            if !leading_dot && self.eat(b'.') {
                is_float = true;
                self.skip_while(|byte| byte.is_ascii_digit());
            }
            if self.eat(b'e') || self.eat(b'E') {
                is_float = true;
                let _ = self.eat(b'-') || self.eat(b'+');
                self.one_or_more(|byte| byte.is_ascii_digit(), "expected an exponent after \"e\"");
            }
        }
        if is_letter(self.peek()) {
            self.error("expected a space between the number and the identifier");
        } else if self.peek() == b'.' {
            self.error(if is_float {
                "a second decimal point in a number"
            } else {
                "hex and octal numbers must be integers"
            });
        }
        if is_float { TokenKind::Float } else { TokenKind::Integer }
    }

    fn string(&mut self, delimiter: u8) {
        loop {
            match self.peek() {
                0 => return self.error("unexpected end of string"),
                b'\n' => {
                    return self
                        .error("unterminated string: expected a closing quote before the end of the line");
                }
                b'\\' => {
                    self.bump();
                    self.escape();
                }
                byte => {
                    self.bump();
                    if byte == delimiter {
                        return;
                    }
                }
            }
        }
    }

    fn escape(&mut self) {
        let byte = self.peek();
        if is_escape(byte) || is_octal(byte) {
            self.bump();
        } else if self.eat(b'x') || self.eat(b'X') {
            if !self.eat_if(|byte| byte.is_ascii_hexdigit()) {
                self.error("expected hex digits in the escape sequence");
            }
        } else if self.eat(b'u') {
            if !(0..4).all(|_| self.eat_if(|byte| byte.is_ascii_hexdigit())) {
                self.error("expected four hex digits in the \\u escape sequence");
            }
        } else if self.eat(b'U') {
            let in_range = self.eat(b'0') && self.eat(b'0') && (self.eat(b'0') || self.eat(b'1'));
            if !in_range || !(0..5).all(|_| self.eat_if(|byte| byte.is_ascii_hexdigit())) {
                self.error("expected eight hex digits up to 10ffff in the \\U escape sequence");
            }
        } else {
            self.error("invalid escape sequence in string");
        }
    }

    fn comment_start(&mut self) -> CommentStart {
        if self.peek() != b'/' {
            return CommentStart::None;
        }
        let (line, column) = (self.line, self.column);
        self.bump();
        if self.eat(b'/') {
            CommentStart::Line
        } else if self.eat(b'*') {
            CommentStart::Block
        } else {
            let (start, end) = (self.at as u32 - 1, self.at as u32);
            let kind = TokenKind::Symbol;
            self.current = Token { kind, start, end, line, column, end_column: self.column };
            CommentStart::Slash
        }
    }

    fn line_comment(&mut self, into: Option<&mut String>) {
        let start = self.at;
        self.skip_while(|byte| byte != 0 && byte != b'\n');
        self.eat(b'\n');
        self.record(start, self.at, into);
    }

    /// Reads the text of a block comment, without the asterisks at the starts of its lines.
    fn block_comment(&mut self, mut into: Option<&mut String>) {
        let started = Position { line: self.line, column: self.column.saturating_sub(2) };
        let mut start = self.at;
        loop {
            self.skip_while(|byte| !matches!(byte, 0 | b'*' | b'/' | b'\n'));
            if self.eat(b'\n') {
                self.record(start, self.at, into.as_deref_mut());
                self.skip_while(is_blank);
                let closed = self.eat(b'*') && self.eat(b'/');
                start = self.at;
                if closed {
                    return;
                }
            } else if self.eat(b'*') {
                if self.eat(b'/') {
                    return self.record(start, self.at - 2, into);
                }
            } else if self.eat(b'/') {
                if self.peek() == b'*' {
                    self.error("\"/*\" inside of a block comment: block comments do not nest");
                }
            } else {
                self.error("expected \"*/\" before the end of the file");
                self.error_at(started.line, started.column, "the comment starts here");
                return self.record(start, self.at, into);
            }
        }
    }

    fn record(&self, start: usize, end: usize, into: Option<&mut String>) {
        if let Some(into) = into {
            into.push_str(&String::from_utf8_lossy(self.source.get(start..end).unwrap_or_default()));
        }
    }

    fn one_or_more(&mut self, class: impl Fn(u8) -> bool, message: &str) {
        if !class(self.peek()) {
            self.error(message);
        }
        self.skip_while(class);
    }

    /// Returns 0 at the end.
    fn peek(&self) -> u8 {
        self.source.get(self.at).copied().unwrap_or(0)
    }

    fn bump(&mut self) {
        match self.peek() {
            b'\n' => {
                self.line += 1;
                self.column = 0;
            }
            b'\t' => self.column += TAB_WIDTH - self.column % TAB_WIDTH,
            _ => self.column += 1,
        }
        self.at += 1;
    }

    fn skip_while(&mut self, class: impl Fn(u8) -> bool) {
        while let Some(&byte) = self.source.get(self.at)
            && class(byte)
        {
            self.bump();
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.eat_if(|found| found == byte)
    }

    fn eat_if(&mut self, class: impl Fn(u8) -> bool) -> bool {
        let found = self.source.get(self.at).is_some_and(|&byte| class(byte));
        if found {
            self.bump();
        }
        found
    }

    fn error(&mut self, message: &str) {
        self.error_at(self.line, self.column, message);
    }

    fn error_at(&mut self, line: u32, column: u32, message: &str) {
        self.errors.push(LexError { at: Position { line, column }, message: message.to_owned() });
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn is_whitespace(byte: u8) -> bool {
    byte == b'\n' || is_blank(byte)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

fn is_control(byte: u8) -> bool {
    byte < b' ' && !is_whitespace(byte)
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_octal(byte: u8) -> bool {
    matches!(byte, b'0'..=b'7')
}

fn is_escape(byte: u8) -> bool {
    matches!(byte, b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\' | b'?' | b'\'' | b'"')
}
