//! Path templates of annotations: `/v1/{name=shelves/*/books/**}:publish`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;

/// A parsed path template.
///
/// ```text
/// Template  = "/" [ Segments ] [ ":" LITERAL ] ;
/// Segments  = Segment { "/" Segment } ;
/// Segment   = "*" | "**" | LITERAL | Variable ;
/// Variable  = "{" FieldPath [ "=" Segments ] "}" ;
/// FieldPath = IDENT { "." IDENT } ;
/// ```
///
/// `**` may occur once and be followed only by literals. Variables cannot be nested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: Box<str>,
    segments: Vec<Segment>,
    verb: Option<Box<str>>,
    variables: Vec<Variable>,
}

/// Pattern of a path segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// This literal text.
    Literal(Box<str>),
    /// `*`: one segment.
    Any,
    /// `**`: zero or more segments.
    Rest,
}

/// A field whose value is a part of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The field as written in the template: `book.name`.
    pub field_path: Box<str>,
    /// The template's segments that form its value.
    pub segments: Range<usize>,
    /// Whether it matches exactly one segment, which is then fully decoded.
    pub is_single: bool,
}

/// Error for an invalid template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{template}`, column {column}: {problem}")]
pub struct TemplateError {
    /// The template text.
    pub template: String,
    /// Column of the error, in bytes from 1.
    pub column: usize,
    /// The problem.
    pub problem: &'static str,
}

impl Template {
    /// Returns the segments; empty for `/`.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the text after the last colon, if there is one.
    pub fn verb(&self) -> Option<&str> {
        self.verb.as_deref()
    }

    /// Returns the variables, in order.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Returns the template without variable names: templates of the same shape match the same paths.
    pub fn shape(&self) -> String {
        let mut shape = String::new();
        for segment in &self.segments {
            shape.push('/');
            shape.push_str(match segment {
                Segment::Literal(text) => text,
                Segment::Any => "*",
                Segment::Rest => "**",
            });
        }
        if self.segments.is_empty() {
            shape.push('/');
        }
        if let Some(verb) = &self.verb {
            shape.push(':');
            shape.push_str(verb);
        }
        shape
    }
}

impl fmt::Display for Template {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Template, TemplateError> {
        let mut parser = Parser { text, at: 0, segments: Vec::new(), variables: Vec::new() };
        match parser.template() {
            Ok(verb) => Ok(Template {
                text: text.into(),
                segments: parser.segments,
                verb,
                variables: parser.variables,
            }),
            Err(problem) => Err(TemplateError { template: text.to_owned(), column: parser.at + 1, problem }),
        }
    }
}

/// Template parser. After an error, `at` is its position.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    segments: Vec<Segment>,
    variables: Vec<Variable>,
}

type Parsed<T> = Result<T, &'static str>;

impl<'t> Parser<'t> {
    fn template(&mut self) -> Parsed<Option<Box<str>>> {
        if !self.take(b'/') {
            return Err("expected a slash at the start");
        }
        if self.at == self.text.len() {
            return Ok(None);
        }
        self.segments(false)?;
        match self.peek() {
            None => Ok(None),
            Some(b':') => {
                self.at += 1;
                let verb = self.literal("expected a verb after the colon")?;
                if self.at < self.text.len() {
                    return Err("expected the end after the verb");
                }
                Ok(Some(verb.into()))
            }
            Some(b'}') => Err("closing brace without an open variable"),
            Some(b'{') => Err("expected a slash before the variable"),
            Some(_) => Err("expected a slash, a colon or the end"),
        }
    }

    fn segments(&mut self, is_in_variable: bool) -> Parsed<()> {
        loop {
            self.segment(is_in_variable)?;
            if !self.take(b'/') {
                return Ok(());
            }
        }
    }

    fn segment(&mut self, is_in_variable: bool) -> Parsed<()> {
        match self.peek() {
            Some(b'*') => {
                let is_rest = self.text[self.at..].starts_with("**");
                if self.segments.contains(&Segment::Rest) {
                    return Err("only literals can follow **");
                }
                self.at += if is_rest { 2 } else { 1 };
                self.segments.push(if is_rest { Segment::Rest } else { Segment::Any });
                Ok(())
            }
            Some(b'{') if is_in_variable => Err("variables cannot be nested"),
            Some(b'{') => self.variable(),
            _ => {
                let literal = self.literal("expected a non-empty segment")?;
                self.segments.push(Segment::Literal(literal.into()));
                Ok(())
            }
        }
    }

    fn variable(&mut self) -> Parsed<()> {
        self.at += 1;
        let start = self.at;
        self.identifier()?;
        while self.take(b'.') {
            self.identifier()?;
        }
        let field_path = &self.text[start..self.at];
        if self.variables.iter().any(|other| *other.field_path == *field_path) {
            self.at = start;
            return Err("duplicate variable");
        }
        let first = self.segments.len();
        if self.take(b'=') {
            self.segments(true)?;
        } else if self.segments.contains(&Segment::Rest) {
            return Err("only literals can follow **");
        } else {
            self.segments.push(Segment::Any);
        }
        if !self.take(b'}') {
            return Err("expected a closing brace");
        }
        let segments = first..self.segments.len();
        let is_single = segments.len() == 1 && self.segments[first] != Segment::Rest;
        self.variables.push(Variable { field_path: field_path.into(), segments, is_single });
        Ok(())
    }

    fn identifier(&mut self) -> Parsed<()> {
        let is_start = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        if !self.peek().as_ref().is_some_and(is_start) {
            return Err("expected a field name");
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        Ok(())
    }

    /// Parses a literal: characters of a path segment (RFC 3986 §3.3) without special meaning in templates.
    fn literal(&mut self, if_empty: &'static str) -> Parsed<&'t str> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'%' => {
                    let digits = self.text.as_bytes().get(self.at + 1..self.at + 3);
                    if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        return Err("expected two hexadecimal digits after %");
                    }
                    self.at += 3;
                }
                b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'+' | b',' | b';'
                | b'=' | b'@' => self.at += 1,
                byte if byte.is_ascii_alphanumeric() => self.at += 1,
                b'/' | b':' | b'{' | b'}' => break,
                b'*' => return Err("* and ** must be whole segments"),
                _ => return Err("invalid character; percent-encode it"),
            }
        }
        if self.at == start {
            return Err(if_empty);
        }
        Ok(&self.text[start..self.at])
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, Template};

    /// Formats segments, verb and variables: `a * ** | verb | x:0..1 y.z:1..3+`, where `+` marks several segments.
    fn describe(template: &Template) -> String {
        let segments: Vec<&str> = template
            .segments()
            .iter()
            .map(|segment| match segment {
                Segment::Literal(text) => &**text,
                Segment::Any => "*",
                Segment::Rest => "**",
            })
            .collect();
        let variables: Vec<String> = template
            .variables()
            .iter()
            .map(|variable| {
                let more = if variable.is_single { "" } else { "+" };
                format!("{}:{:?}{more}", variable.field_path, variable.segments)
            })
            .collect();
        let verb = template.verb().unwrap_or("");
        format!("{} | {verb} | {}", segments.join(" "), variables.join(" ")).trim().to_owned()
    }

    fn check(text: &str, expected: &str) {
        match text.parse::<Template>() {
            Ok(template) => {
                assert_eq!(describe(&template), expected, "{text}");
                assert_eq!(template.to_string(), text);
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn templates() {
        check("/", "|  |");
        check("/*", "* |  |");
        check("/**", "** |  |");
        check("/a/**", "a ** |  |");
        check("/shelves/**", "shelves ** |  |");
        check("/*/**", "* ** |  |");
        check("/*/a/**", "* a ** |  |");
        check("/a/**/b/c", "a ** b c |  |");
        check("/shelves/{shelf}/books/{book}", "shelves * books * |  | shelf:1..2 book:3..4");
        check("/{x}", "* |  | x:0..1");
        check("/{x=*}", "* |  | x:0..1");
        check("/{x.y.z}", "* |  | x.y.z:0..1");
        check("/{x=**}", "** |  | x:0..1+");
        check("/{x.y.z=**}", "** |  | x.y.z:0..1+");
        check("/{x=a}", "a |  | x:0..1");
        check("/{x=a/*}", "a * |  | x:0..2+");
        check("/{x=*/*}", "* * |  | x:0..2+");
        check("/a/{b=*}", "a * |  | b:1..2");
        check("/a/{b=**}", "a ** |  | b:1..2+");
        check("/a/{a.b.c}", "a * |  | a.b.c:1..2");
        check("/a/{a.b.c=*}", "a * |  | a.b.c:1..2");
        check("/a/{b=c/*}", "a c * |  | b:1..3+");
        check("/a/{b=c/*/d}", "a c * d |  | b:1..4+");
        check("/a/{b=c/**}", "a c ** |  | b:1..3+");
        check("/a/{b=c/**}/d/e", "a c ** d e |  | b:1..3+");
        check("/a/{b=c/**/d}/e", "a c ** d e |  | b:1..4+");
        check("/{x.y.z=*/a/b}/c", "* a b c |  | x.y.z:0..3+");
        check("/{x.y.z=a/**/b}", "a ** b |  | x.y.z:0..3+");
        check("/{x.y.z=a/**/b}/c/d", "a ** b c d |  | x.y.z:0..3+");
        check("/{_a1.B_2}", "* |  | _a1.B_2:0..1");
    }

    #[test]
    fn verbs() {
        check("/a:foo", "a | foo |");
        check("/a/b/c:foo", "a b c | foo |");
        check("/*:verb", "* | verb |");
        check("/**:verb", "** | verb |");
        check("/{a}:verb", "* | verb | a:0..1");
        check("/a/*:verb", "a * | verb |");
        check("/a/**:verb", "a ** | verb |");
        check("/a/b/*:verb", "a b * | verb |");
        check("/a/b/**:verb", "a b ** | verb |");
        check("/a/b/{a}:verb", "a b * | verb | a:2..3");
        check("/{x.y.z}:verb", "* | verb | x.y.z:0..1");
        check("/{x.y.z=*/*}:verb", "* * | verb | x.y.z:0..2+");
        check("/{x.y.z=**}:verb", "** | verb | x.y.z:0..1+");
        check("/{x.y.z=a/**/b}:verb", "a ** b | verb | x.y.z:0..3+");
        check("/{x.y.z=a/**/b}/c/d:verb", "a ** b c d | verb | x.y.z:0..3+");
        check("/a/{b=*}/**:verb", "a * ** | verb | b:1..2");
        check("/a/{b=c/**/d}/e:verb", "a c ** d e | verb | b:1..4+");
        check("/{x=**}:my-verb", "** | my-verb | x:0..1+");
    }

    #[test]
    fn literal_may_have_any_path_character() {
        check("/a-b._~/!$&'()+,;=@/%20%2f", "a-b._~ !$&'()+,;=@ %20%2f |  |");
        check("/google.longrunning.Operations/Get", "google.longrunning.Operations Get |  |");
    }

    fn check_error(text: &str, column: usize, problem: &str) {
        match text.parse::<Template>() {
            Ok(template) => panic!("{text}: {}", describe(&template)),
            Err(error) => {
                assert_eq!((error.column, error.template.as_str()), (column, text), "{error}");
                assert!(error.problem.contains(problem), "{error}");
            }
        }
    }

    #[test]
    fn invalid_template_is_reported_with_column() {
        let slash = "a slash at the start";
        for text in
            ["", "a", "a/b", "{x}", "{x=/a}", "{x=/a/b}", "a/b/{x}", "a/{x}/b", "a/{x}/b:verb", ":", ":verb"]
        {
            check_error(text, 1, slash);
        }
        let empty = "a non-empty segment";
        for (text, column) in [
            ("//", 2),
            ("/a/", 4),
            ("/a//b", 4),
            ("/:verb", 2),
            ("/a/:verb", 4),
            ("/:", 2),
            ("/a/:", 4),
            ("/a/b/:", 6),
            ("/a/{var=/b}", 9),
            ("/a/{var=}", 9),
            ("/{x=a/}", 7),
        ] {
            check_error(text, column, empty);
        }
        let no_verb = "expected a verb";
        for text in [
            "/*:",
            "/**:",
            "/{var}:",
            "/a/*:",
            "/a/**:",
            "/a/b/*:",
            "/a/b/**:",
            "/a/b/{var}:",
            "/a/{b=*}/**:",
        ] {
            check_error(text, text.len() + 1, no_verb);
        }
        let no_name = "a field name";
        for (text, column) in
            [("/{}", 3), ("/a/{", 5), ("/a/{var.", 9), ("/{1}", 3), ("/{a..b}", 5), ("/{=a}", 3)]
        {
            check_error(text, column, no_name);
        }
        check_error("/a/{var", 8, "a closing brace");
        check_error("/a/{x=var:verb}", 10, "a closing brace");
        check_error("/{a-b}", 4, "a closing brace");
        check_error("/{var=a/{nested=b}}", 9, "cannot be nested");
        let not_whole_segment = "a slash before the variable";
        for (text, column) in [
            ("/a{x}", 3),
            ("/a{x}b", 3),
            ("/a/b{x}", 5),
            ("/a/b{x}/s", 5),
            ("/a/b{x}c", 5),
            ("/a/b{x}c/s", 5),
            ("/a{x=b/**}/{y=*}", 3),
            ("/a{x=b/**}/{y=**}", 3),
            ("/a{x=b/**}/bb/{y=*}", 3),
            ("/a{x=b/**}/bb/{y=**}", 3),
        ] {
            check_error(text, column, not_whole_segment);
        }
        let expected = "a slash, a colon or the end";
        for (text, column) in [
            ("/{x}a", 5),
            ("/{x}a{y}", 5),
            ("/a/{x}b", 7),
            ("/a/{x}b{y}", 7),
            ("/a/{x}b/s", 7),
            ("/a/{x}b{y}/s", 7),
            ("/***", 4),
        ] {
            check_error(text, column, expected);
        }
        let behind = "follow **";
        for (text, column) in [
            ("/a/**/*", 7),
            ("/a/**/foo/*", 11),
            ("/a/**/**", 7),
            ("/a/**/foo/**", 11),
            ("/{x=**}/{y=**}", 12),
            ("/{x=**}/{y}", 11),
        ] {
            check_error(text, column, behind);
        }
        check_error("/{x}/{y}/{x}", 11, "duplicate variable");
        check_error("/a}", 3, "without an open variable");
        check_error("/a:b:c", 5, "the end after the verb");
        check_error("/a:b/c", 5, "the end after the verb");
        check_error("/a*", 3, "whole segments");
        check_error("/a b", 3, "percent-encode it");
        check_error("/caf\u{e9}", 5, "percent-encode it");
        check_error("/a?b", 3, "percent-encode it");
        check_error("/a%2", 3, "two hexadecimal digits");
        check_error("/a%zz", 3, "two hexadecimal digits");
        check_error("/%e\u{e9}", 2, "two hexadecimal digits");
    }

    #[test]
    fn shape_omits_variable_names() {
        for (left, right) in
            [("/a/{b}", "/a/{c.d=*}"), ("/{x=a/*}/**:v", "/a/{y}/{z=**}:v"), ("/", "/"), ("/{x=a}", "/a")]
        {
            let shape = |text: &str| text.parse::<Template>().map(|template| template.shape());
            assert_eq!(shape(left), shape(right));
        }
    }
}
