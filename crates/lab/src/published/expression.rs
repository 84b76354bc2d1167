//! Expression language of the publications' data: measures, rules and texts.
//!
//! An expression is a number (`1.15`, `64KiB`), a text, a list, a record or a name. `a.b` is a field of a record, or
//! of each record in a list. `cell(size: 0)` measures with this size and otherwise with the conditions in scope.
//! `[p50 for size in sizes if size > 0]` iterates over lists. In a text, `{p50|time}` is a figure, and a part in `[…]`
//! is omitted if one of its figures is missing. Text between single quotes is literal.

use serde::Deserialize;

/// An expression.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Expression {
    Number(f64),
    Text(Text),
    Name(String),
    List(Vec<Expression>),
    Record(Bindings),
    Field(Box<Expression>, String),
    /// A call of a built-in function.
    Call(String, Vec<Expression>),
    /// A measure with conditions that override those in scope.
    Measure(String, Bindings),
    Binary(String, Box<(Expression, Expression)>),
    Each(Box<Each>),
}

/// Named expressions in evaluation order.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Bindings(pub(crate) Vec<(String, Expression)>);

/// A comprehension over lists; the last list varies fastest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Each {
    pub(crate) item: Expression,
    pub(crate) over: Vec<(String, Expression)>,
    pub(crate) condition: Option<Expression>,
}

/// A text with embedded figures.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Text(pub(crate) Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Words(String),
    /// A figure with the name of its format, which may be empty.
    Figure(Expression, String),
    Optional(Text),
}

impl TryFrom<String> for Expression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_all(&text, |parser| parser.binary(0))
    }
}

impl TryFrom<String> for Bindings {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_all(&text, |parser| parser.bindings("=", ""))
    }
}

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_all(&text, |parser| parser.text(None))
    }
}

fn parse_all<'t, T>(
    text: &'t str,
    parse: impl FnOnce(&mut Parser<'t>) -> Result<T, String>,
) -> Result<T, String> {
    let mut parser = Parser { rest: text };
    let parsed = parse(&mut parser)?;
    if parser.rest.trim().is_empty() { Ok(parsed) } else { parser.expected("the end") }
}

/// Operators, from lowest to highest precedence.
const OPERATORS: [&[&str]; 5] =
    [&["or"], &["and"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/"]];

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn binary(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = OPERATORS.get(level) else { return self.postfix() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.eat(operator)) {
            left = Expression::Binary((*operator).to_owned(), Box::new((left, self.binary(level + 1)?)));
        }
        Ok(left)
    }

    fn postfix(&mut self) -> Result<Expression, String> {
        let mut value = self.atom()?;
        while self.eat(".") {
            value = Expression::Field(Box::new(value), self.name()?);
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<Expression, String> {
        if self.eat("(") {
            let inner = self.binary(0)?;
            return self.closed(")", inner);
        }
        if self.eat("\"") {
            return Ok(Expression::Text(self.text(Some('"'))?));
        }
        if self.eat("'") {
            let (words, rest) = self.rest.split_once('\'').ok_or("unterminated text")?;
            self.rest = rest;
            return Ok(Expression::Text(Text(vec![Part::Words(words.to_owned())])));
        }
        if self.eat("{") {
            let bindings = self.bindings(":", "}")?;
            return self.closed("}", Expression::Record(bindings));
        }
        if self.eat("[") {
            return self.list();
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let name = self.name()?;
        if !self.eat("(") {
            return Ok(Expression::Name(name));
        }
        let before = self.rest;
        let is_named = self.name().is_ok() && self.eat(":");
        self.rest = before;
        let call = if is_named {
            Expression::Measure(name, self.bindings(":", ")")?)
        } else {
            Expression::Call(name, self.listed(")")?)
        };
        self.closed(")", call)
    }

    fn number(&mut self) -> Result<Expression, String> {
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '.');
        let number = word.parse().ok();
        let size = || word.parse().ok().map(|size: thalweg_measure::size::ByteSize| size.0 as f64);
        number.or_else(size).map(Expression::Number).ok_or_else(|| format!("`{word}` is not a number"))
    }

    fn list(&mut self) -> Result<Expression, String> {
        let mut items = self.listed("]")?;
        let mut over = Vec::new();
        while self.eat("for") {
            let name = self.name()?;
            if !self.eat("in") {
                return self.expected("`in`");
            }
            over.push((name, self.binary(0)?));
        }
        if over.is_empty() {
            return self.closed("]", Expression::List(items));
        }
        let condition = if self.eat("if") { Some(self.binary(0)?) } else { None };
        let item = items.pop().ok_or("a list without items")?;
        self.closed("]", Expression::Each(Box::new(Each { item, over, condition })))
    }

    /// Parses comma-separated expressions.
    fn listed(&mut self, end: &str) -> Result<Vec<Expression>, String> {
        let mut items = Vec::new();
        while !self.is_at(end) {
            items.push(self.binary(0)?);
            if !self.eat(",") {
                break;
            }
        }
        Ok(items)
    }

    /// Parses named expressions, optionally separated by commas.
    fn bindings(&mut self, sign: &str, end: &str) -> Result<Bindings, String> {
        let mut all = Vec::new();
        while !self.is_at(end) {
            let name = self.name()?;
            if !self.eat(sign) {
                return self.expected(&format!("`{sign}` after `{name}`"));
            }
            all.push((name, self.binary(0)?));
            self.eat(",");
        }
        Ok(Bindings(all))
    }

    fn text(&mut self, end: Option<char>) -> Result<Text, String> {
        let mut parts = Vec::new();
        loop {
            let stop = self.rest.find(|c| matches!(c, '{' | '[') || Some(c) == end);
            let (words, rest) = self.rest.split_at(stop.unwrap_or(self.rest.len()));
            if !words.is_empty() {
                parts.push(Part::Words(words.to_owned()));
            }
            self.rest = rest;
            let Some(first) = rest.chars().next() else {
                return if end.is_none() { Ok(Text(parts)) } else { self.expected("the end of a text") };
            };
            self.rest = &rest[first.len_utf8()..];
            if Some(first) == end {
                return Ok(Text(parts));
            }
            if first == '[' {
                parts.push(Part::Optional(self.text(Some(']'))?));
                continue;
            }
            let figure = self.binary(0)?;
            let format = if self.eat("|") { self.name()? } else { String::new() };
            parts.push(Part::Figure(figure, format));
            // After the brace, spaces are part of the text.
            let Some(rest) = self.rest.strip_prefix('}') else { return self.expected("`}`") };
            self.rest = rest;
        }
    }

    fn name(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() { self.expected("a name") } else { Ok(name.to_owned()) }
    }

    fn word(&mut self, is_in: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_in(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn is_at(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        if token.is_empty() { self.rest.is_empty() } else { self.rest.starts_with(token) }
    }

    /// Consumes the token if it is next. A word token must match a whole word.
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_cut = token.ends_with(is_word) && rest.starts_with(is_word);
        if !is_cut {
            self.rest = rest;
        }
        !is_cut
    }

    fn closed(&mut self, end: &str, parsed: Expression) -> Result<Expression, String> {
        if self.eat(end) { Ok(parsed) } else { self.expected(&format!("`{end}`")) }
    }

    fn expected<T>(&self, what: &str) -> Result<T, String> {
        let rest: String = self.rest.chars().take(40).collect();
        Err(format!("expected {what} at `{rest}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_data_is_rejected_with_position() {
        for (text, expected) in [
            ("1 +", "expected a name at ``"),
            ("[a for b]", "expected `in` at `]`"),
            ("12furlongs", "`12furlongs` is not a number"),
            ("\"{a", "expected `}` at ``"),
            ("a b", "expected the end at `b`"),
        ] {
            assert_eq!(Expression::try_from(text.to_owned()), Err(expected.to_owned()), "{text}");
        }
    }
}
