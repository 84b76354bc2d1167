//! Reads from a Rust file which modules it imports. No full parser is needed for that: words, `::` and braces are
//! enough, once comments, strings and characters are out of the way.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

/// A file as words and punctuation, each with its line, without its `mod tests`.
pub(super) struct Source {
    tokens: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    line: usize,
    text: String,
    /// How many inline modules it stands in.
    depth: usize,
}

impl Source {
    pub(super) fn read(text: &str) -> Self {
        Self { tokens: outside_tests(words(text)) }
    }

    /// Where one of `paths` (`a` or `a::b`) stands, with its line.
    pub(super) fn mentions(&self, paths: &[&str]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for path in paths {
            let wanted: Vec<&str> = path.split("::").flat_map(|word| ["::", word]).skip(1).collect();
            let windows = self.tokens.windows(wanted.len());
            let places = windows
                .filter(|window| window.iter().map(|token| token.text.as_str()).eq(wanted.iter().copied()));
            found.extend(places.map(|window| (window[0].line, (*path).to_owned())));
        }
        found
    }

    /// The top modules of the crate that this file, which is the module `path`, names through `crate::` or `super::`.
    pub(super) fn imports(&self, path: &[String]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (position, token) in self.tokens.iter().enumerate() {
            let is_start = position == 0 || self.tokens[position - 1].text != "::";
            if !is_start {
                continue;
            }
            match token.text.as_str() {
                "crate" => found.extend(self.heads(position + 1)),
                "super" => {
                    let (levels, after) = self.climb(position);
                    // At the root of the crate stands the same as after `crate::`.
                    if levels == path.len() + token.depth {
                        found.extend(self.heads(after));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// How many `super` follow each other from `position`, and what comes after them.
    fn climb(&self, position: usize) -> (usize, usize) {
        let mut levels = 1;
        let mut after = position + 1;
        while self.text(after) == "::" && self.text(after + 1) == "super" {
            levels += 1;
            after += 2;
        }
        (levels, after)
    }

    /// The first words of a path or of a braced list of paths, which starts with the `::` at `position`.
    fn heads(&self, position: usize) -> Vec<(usize, String)> {
        if self.text(position) != "::" {
            return Vec::new();
        }
        let Some(first) = self.tokens.get(position + 1) else { return Vec::new() };
        if first.text != "{" {
            return vec![(first.line, first.text.clone())];
        }
        let mut heads = Vec::new();
        let mut braces = 0_usize;
        let mut is_head = true;
        for token in &self.tokens[position + 1..] {
            match token.text.as_str() {
                "{" => braces += 1,
                "}" => braces -= 1,
                "," => is_head = braces == 1,
                _ if is_head && braces == 1 => {
                    heads.push((token.line, token.text.clone()));
                    is_head = false;
                }
                _ => {}
            }
            if braces == 0 {
                break;
            }
        }
        heads
    }

    fn text(&self, position: usize) -> &str {
        self.tokens.get(position).map_or("", |token| token.text.as_str())
    }
}

/// The module path of a file below `src`: `server/dispatch.rs` is `server::dispatch`.
pub(super) fn path_of(file: &Path) -> Vec<String> {
    let without_extension = file.with_extension("");
    let mut path: Vec<String> =
        without_extension.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_own_folder = path.last().is_some_and(|last| last == "mod" || last == "lib" || last == "main");
    if is_own_folder {
        path.pop();
    }
    path
}

/// Leaves out `mod tests { … }` and notes how deep in inline modules each token stands.
fn outside_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    // For each open brace, whether it opened a module and whether that is the tests'.
    let mut braces: Vec<(bool, bool)> = Vec::new();
    let mut last_two = [String::new(), String::new()];
    for mut token in tokens {
        let in_tests = braces.iter().any(|(_, is_tests)| *is_tests);
        match token.text.as_str() {
            "{" => braces.push((last_two[0] == "mod", last_two[0] == "mod" && last_two[1] == "tests")),
            "}" => drop(braces.pop()),
            _ => {}
        }
        last_two = [std::mem::take(&mut last_two[1]), token.text.clone()];
        if !in_tests {
            token.depth = braces.iter().filter(|(is_module, _)| *is_module).count();
            kept.push(token);
        }
    }
    kept
}

/// Words and punctuation; `::` is one token.
fn words(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let mut push = |text: String| tokens.push(Token { line, text, depth: 0 });
        match character {
            '\n' => line += 1,
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|next| *next != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => line += skip_block_comment(&mut rest),
            '"' => line += skip_string(&mut rest),
            '\'' => skip_character(&mut rest),
            'r' if matches!(rest.peek(), Some('"' | '#')) => line += skip_raw_string(&mut rest),
            ':' if rest.next_if_eq(&':').is_some() => push("::".to_owned()),
            _ if is_word(character) => {
                let mut word = String::from(character);
                while let Some(next) = rest.next_if(|next| is_word(*next)) {
                    word.push(next);
                }
                push(word);
            }
            _ if character.is_whitespace() => {}
            _ => push(character.to_string()),
        }
    }
    tokens
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Each of these is past the opening characters and gives how many line ends it skipped.
fn skip_block_comment(rest: &mut Peekable<Chars<'_>>) -> usize {
    let mut lines = 0;
    let mut open = 0_usize;
    let mut previous = '/';
    for character in rest.by_ref() {
        lines += usize::from(character == '\n');
        match (previous, character) {
            ('/', '*') => open += 1,
            ('*', '/') => open -= 1,
            _ => {}
        }
        // `/*/` is no comment that ends where it starts.
        previous = if matches!((previous, character), ('/', '*') | ('*', '/')) { ' ' } else { character };
        if open == 0 {
            break;
        }
    }
    lines
}

fn skip_string(rest: &mut Peekable<Chars<'_>>) -> usize {
    let mut lines = 0;
    while let Some(character) = rest.next() {
        match character {
            '\\' => lines += usize::from(rest.next() == Some('\n')),
            '\n' => lines += 1,
            '"' => break,
            _ => {}
        }
    }
    lines
}

/// `r"…"`, `r#"…"#` and so on. `r#name` is a word, whose `#` and name are left to be read.
fn skip_raw_string(rest: &mut Peekable<Chars<'_>>) -> usize {
    let mut hashes = 0;
    while rest.next_if_eq(&'#').is_some() {
        hashes += 1;
    }
    if rest.next_if_eq(&'"').is_none() {
        return 0;
    }
    let mut lines = 0;
    let mut closing = None;
    for character in rest.by_ref() {
        lines += usize::from(character == '\n');
        closing = match (character, closing) {
            ('"', _) => Some(0),
            ('#', Some(seen)) => Some(seen + 1),
            _ => None,
        };
        if closing == Some(hashes) {
            break;
        }
    }
    lines
}

/// `'x'` and `'\n'`, but not the lifetime `'a`.
fn skip_character(rest: &mut Peekable<Chars<'_>>) {
    let mut ahead = rest.clone();
    match (ahead.next(), ahead.next()) {
        (Some('\\'), _) => {
            rest.next();
            rest.next();
            while rest.next().is_some_and(|character| character != '\'') {}
        }
        (Some(_), Some('\'')) => {
            rest.next();
            rest.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Source, path_of};

    fn check(module: &str, text: &str, imports: &[(usize, &str)]) {
        let path: Vec<String> =
            module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let found = Source::read(text).imports(&path);
        let found: Vec<(usize, &str)> = found.iter().map(|(line, name)| (*line, name.as_str())).collect();
        assert_eq!(found, imports, "{text}");
    }

    #[test]
    fn imports_are_read_from_every_kind_of_path() {
        check("a", "use crate::b;", &[(1, "b")]);
        check("a", "use crate::{b, c::{d, e},\n f as g};", &[(1, "b"), (1, "c"), (2, "f")]);
        check("a", "let x = crate::b::new();", &[(1, "b")]);
        check("a::b", "use super::c; use super::super::d;", &[(1, "d")]);
        check("a", "mod inline { use super::super::d; use super::c; }", &[(1, "d")]);
        check("a", "pub(crate) fn f() {}", &[]);
    }

    #[test]
    fn what_is_not_code_is_not_read() {
        check("a", "// use crate::b;\n/* crate::c /* crate::d */ */ use crate::e;", &[(2, "e")]);
        check("a", "let s = \"\\\" crate::b\n\"; use crate::e;", &[(2, "e")]);
        check("a", "let s = r#\"crate::b \" \n\"#; use crate::e;", &[(2, "e")]);
        check("a", "fn f<'a>(c: &'a str) -> char { '\"' } use crate::e;", &[(1, "e")]);
        check(
            "a",
            "#[cfg(test)] mod tests { use crate::b; mod c { } use crate::d; } use crate::e;",
            &[(1, "e")],
        );
    }

    #[test]
    fn files_have_module_paths() {
        let check = |file: &str, path: &str| assert_eq!(path_of(Path::new(file)).join("::"), path, "{file}");
        check("server/dispatch.rs", "server::dispatch");
        check("server/mod.rs", "server");
        check("server.rs", "server");
        check("lib.rs", "");
    }
}
