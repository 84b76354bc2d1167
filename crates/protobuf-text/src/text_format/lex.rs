//! Tokens of the text.

use super::literal;
use thalweg_protobuf::json::LocatedError;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// `[A-Za-z_][A-Za-z0-9_]*`
    Word(&'t str),
    /// A word that starts with a digit, or with a point and a digit.
    Number(&'t str),
    /// The raw text between quotes, with escapes.
    Text(&'t str),
    Sign(char),
    End,
}

/// Reads tokens with a lookahead of one.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    /// Start and end of the next token.
    start: usize,
    end: usize,
    next: Token<'t>,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Result<Self, LocatedError> {
        let text = std::str::from_utf8(text)
            .map_err(|error| LocatedError::new(error.valid_up_to(), "invalid UTF-8"))?;
        let mut lexer = Self { text, start: 0, end: 0, next: Token::End };
        lexer.advance()?;
        Ok(lexer)
    }

    /// Returns the next token.
    pub(super) fn peek(&self) -> Token<'t> {
        self.next
    }

    /// Returns the start of the next token.
    pub(super) fn at(&self) -> usize {
        self.start
    }

    pub(super) fn take(&mut self) -> Result<Token<'t>, LocatedError> {
        let token = self.next;
        self.advance()?;
        Ok(token)
    }

    /// Consumes this sign if it comes next, and returns whether it did.
    pub(super) fn eat(&mut self, sign: char) -> Result<bool, LocatedError> {
        let is_there = self.next == Token::Sign(sign);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    /// Describes the next token, for error messages.
    pub(super) fn described(&self) -> String {
        match self.next {
            Token::End => "the end".to_owned(),
            Token::Text(_) => "a string".to_owned(),
            Token::Word(text) | Token::Number(text) => format!("`{text}`"),
            Token::Sign(sign) => format!("`{sign}`"),
        }
    }

    /// Reads a name up to `]`, after `[`. Drops white space and comments.
    pub(super) fn bracketed(&mut self) -> Result<String, LocatedError> {
        let mut name = String::new();
        let mut rest = self.text[self.start..].char_indices();
        while let Some((at, c)) = rest.next() {
            match c {
                ']' if name.is_empty() => {
                    return Err(LocatedError::new(self.start, "expected a name in the brackets"));
                }
                ']' => {
                    self.end = self.start + at + 1;
                    self.advance()?;
                    return Ok(name);
                }
                '#' => drop(rest.find(|(_, c)| *c == '\n')),
                '%' => {
                    let digits = rest.as_str().as_bytes().first_chunk::<2>();
                    if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        return Err(LocatedError::new(self.start + at, "expected two hex digits after `%`"));
                    }
                    name.push(c);
                }
                _ if c.is_ascii_whitespace() => {}
                _ if c.is_ascii_alphanumeric() || "._/-~!$&()*+,;=".contains(c) => name.push(c),
                _ => {
                    return Err(LocatedError::new(
                        self.start + at,
                        format!("unexpected character `{c}` in a name in brackets"),
                    ));
                }
            }
        }
        Err(LocatedError::new(self.start, "expected a closing bracket"))
    }

    /// Returns the bytes of one or several adjacent strings.
    pub(super) fn strings(&mut self) -> Result<Vec<u8>, LocatedError> {
        let mut bytes = Vec::new();
        while let Token::Text(text) = self.next {
            let start = self.start + 1;
            literal::unescape(text, &mut bytes).map_err(|(at, what)| LocatedError::new(start + at, what))?;
            self.advance()?;
        }
        Ok(bytes)
    }

    fn advance(&mut self) -> Result<(), LocatedError> {
        let mut at = self.end;
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at) {
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => at += 1,
                Some(b'#') => {
                    at += bytes[at..].iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len() - at);
                }
                _ => break,
            }
        }
        self.start = at;
        let rest = &self.text[at..];
        let mut chars = rest.chars();
        let (Some(first), second) = (chars.next(), chars.next()) else {
            (self.end, self.next) = (at, Token::End);
            return Ok(());
        };
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let (len, token): (usize, fn(&'t str) -> Token<'t>) = match first {
            '"' | '\'' => return self.quoted(first),
            'a'..='z' | 'A'..='Z' | '_' => (word_len(rest), Token::Word),
            '0'..='9' => (number_len(rest), Token::Number),
            '.' if is_digit(second) => (number_len(rest), Token::Number),
            _ => {
                (self.end, self.next) = (at + first.len_utf8(), Token::Sign(first));
                return Ok(());
            }
        };
        (self.end, self.next) = (at + len, token(&rest[..len]));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), LocatedError> {
        let inner = self.start + 1;
        let mut escaped = false;
        for (at, c) in self.text[inner..].char_indices() {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if c == quote => {
                    (self.end, self.next) = (inner + at + 1, Token::Text(&self.text[inner..inner + at]));
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(LocatedError::new(self.start, "unterminated string"))
    }
}

fn word_len(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

/// Returns the length of a number-like word: `1e-5`, `0x1f`, `.5f`. It is validated once its type is known.
fn number_len(text: &str) -> usize {
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    let mut before = b'0';
    let is_of_number = |byte: &u8| {
        let is_sign_of_exponent = matches!(byte, b'+' | b'-') && matches!(before, b'e' | b'E') && !is_hex;
        before = *byte;
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || is_sign_of_exponent
    };
    text.as_bytes().iter().copied().take_while(is_of_number).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text.as_bytes()).unwrap();
        std::iter::from_fn(|| Some(lexer.take().unwrap()).filter(|token| *token != Token::End)).collect()
    }

    #[test]
    fn tokens_are_classified() {
        use Token::{Number, Sign, Text, Word};
        assert_eq!(
            tokens("a_1: -0x1F # c: 1\n b{.5f,'\\'x'} \"\""),
            [
                Word("a_1"),
                Sign(':'),
                Sign('-'),
                Number("0x1F"),
                Word("b"),
                Sign('{'),
                Number(".5f"),
                Sign(','),
                Text("\\'x"),
                Sign('}'),
                Text(""),
            ]
        );
        assert_eq!(tokens("1e-5-1"), [Number("1e-5"), Sign('-'), Number("1")]);
        assert_eq!(tokens("0x1e-5"), [Number("0x1e"), Sign('-'), Number("5")]);
        for wrong in [&b" 'a\n'"[..], b"a\xff"] {
            assert_eq!(Lexer::new(wrong).unwrap_err().locate(wrong).offset, 1);
        }
    }
}
