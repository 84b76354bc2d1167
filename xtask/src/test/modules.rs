//! Which top modules of its crate a Rust file imports.

use std::path::Path;

use super::tokens::{self, Token};

/// A file's tokens, each with its line, without its tests.
pub(super) struct Source {
    tokens: Vec<Token>,
}

impl Source {
    pub(super) fn read(text: &str) -> Self {
        Self { tokens: tokens::read(text).kept }
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
                    if levels == path.len() + token.inline.len() {
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
