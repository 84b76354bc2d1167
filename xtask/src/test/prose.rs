//! Automatic checks of the wording of comments and documents.
//!
//! `xtask/prose.json` has the words and phrases, and the folders that are not checked yet.

use std::path::Path;

use serde::Deserialize;

use crate::failure::Result;
use crate::{files, workspace};

const RULES: &str = "xtask/prose.json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    /// Words that must not start a comment or a paragraph of a document.
    openings: Vec<String>,
    /// Phrases in lower case that no comment or document may contain.
    phrases: Vec<String>,
    /// Maximum number of words in a sentence.
    sentence_words_max: usize,
    /// Folders and files, relative to the repository's root, that are not checked yet.
    unchecked: Vec<String>,
}

pub(super) fn rules() -> Result<Rules> {
    let rules = serde_json::from_value(files::json(&workspace::root().join(RULES))?);
    rules.map_err(|error| failed!("{RULES}: {error}"))
}

/// A paragraph with the number of its first line, from 1.
#[derive(Debug, PartialEq)]
struct Paragraph {
    line: usize,
    text: String,
}

impl Rules {
    /// Returns violations in the text of a document or the comments of a source, as `path:line: breach`.
    pub(super) fn breaches(&self, path: &Path, text: &str) -> Vec<String> {
        if self.unchecked.iter().any(|unchecked| path.starts_with(unchecked)) {
            return Vec::new();
        }
        let is_markdown = files::has_extension(path, "md");
        let paragraphs = if is_markdown { of_markdown(text) } else { of_comments(text, markers(path)) };
        let shown = path.display();
        let breaches = paragraphs.iter().flat_map(|paragraph| {
            let line = paragraph.line;
            self.of_paragraph(&paragraph.text).into_iter().map(move |breach| (line, breach))
        });
        breaches.map(|(line, breach)| format!("{shown}:{line}: {breach}")).collect()
    }

    fn of_paragraph(&self, text: &str) -> Vec<String> {
        let mut breaches = Vec::new();
        let first = text.split_whitespace().next().unwrap_or_default();
        if self.openings.iter().any(|opening| opening == first) {
            breaches.push(format!("begins with `{first}`"));
        }
        let prose = without_code(text);
        let lower = prose.to_lowercase();
        for phrase in &self.phrases {
            if contains_words(&lower, phrase) {
                breaches.push(format!("has `{phrase}`"));
            }
        }
        for clause in prose.split(". ").flat_map(|sentence| sentence.split("; ")) {
            let words = clause.split_whitespace().count();
            if words > self.sentence_words_max {
                breaches.push(format!("has a sentence of {words} words"));
            }
        }
        breaches
    }
}

/// Returns `text` without the parts in backquotes.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Whether `text` contains `phrase` with no alphanumeric character before or after it.
fn contains_words(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let behind = text[start + phrase.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !behind.is_some_and(char::is_alphanumeric)
    })
}

/// Extensions of checked sources.
pub(super) const SOURCES: &[&str] =
    &["rs", "cc", "css", "go", "h", "java", "js", "proto", "py", "sh", "toml", "yaml", "yml"];

/// Returns the beginnings of comment lines in a source of this kind. Longer ones precede their prefixes.
fn markers(path: &Path) -> &'static [&'static str] {
    let has_hashes = ["py", "sh", "toml", "yaml", "yml"].iter().any(|it| files::has_extension(path, it));
    if has_hashes { &["#"] } else { &["//!", "///", "//", "/**", "/*", "* "] }
}

/// Returns the paragraphs of whole-line comments, without code blocks.
fn of_comments(text: &str, markers: &[&str]) -> Vec<Paragraph> {
    paragraphs(text.lines().map(|line| {
        let line = line.trim_start();
        let comment = markers.iter().find_map(|start| line.strip_prefix(start));
        let is_directive = line.starts_with("////") || line.starts_with("#!");
        comment.map(|comment| comment.trim_end_matches("*/").trim()).filter(|_| !is_directive)
    }))
}

/// Returns the paragraphs of a document, without code, tables, headings, quotes, HTML and blocks that `cargo xtask
/// figures` writes.
fn of_markdown(text: &str) -> Vec<Paragraph> {
    let mut is_generated = false;
    paragraphs(text.lines().map(|line| {
        is_generated |= line.starts_with("<!-- figures");
        let shown = (!is_generated).then_some(line.trim());
        is_generated &= line != "<!-- /figures -->";
        shown
    }))
}

/// Joins lines to paragraphs. `None` ends one.
fn paragraphs<'t>(lines: impl Iterator<Item = Option<&'t str>>) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let (mut is_open, mut is_code) = (false, false);
    for (index, line) in lines.enumerate() {
        let Some(line) = line else {
            (is_open, is_code) = (false, false);
            continue;
        };
        if line.starts_with("```") {
            is_code = !is_code;
            is_open = false;
            continue;
        }
        if is_code || line.is_empty() || line.starts_with(['|', '#', '<', '>', '[']) {
            is_open = false;
            continue;
        }
        let item = list_item(line);
        match found.last_mut().filter(|_| is_open && item.is_none()) {
            Some(paragraph) => {
                paragraph.text.push(' ');
                paragraph.text.push_str(line);
            }
            None => found.push(Paragraph { line: index + 1, text: item.unwrap_or(line).to_owned() }),
        }
        is_open = true;
    }
    found
}

/// The text of a list item's first line.
fn list_item(line: &str) -> Option<&str> {
    let number = line.trim_start_matches(|it: char| it.is_ascii_digit());
    let numbered = (number.len() < line.len()).then(|| number.strip_prefix(". ")).flatten();
    numbered.or_else(|| line.strip_prefix("- ")).or_else(|| line.strip_prefix("* ")).map(str::trim_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let text = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Rules {
            openings: text(&["What", "Of"]),
            phrases: text(&["would do", "is none"]),
            sentence_words_max: 6,
            unchecked: text(&["crates/old"]),
        }
    }

    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(rules().breaches(Path::new(path), text), expected);
    }

    #[test]
    fn comments_are_checked_and_code_is_not() {
        check("a.rs", "//! What it is.\nfn of() { \"is none\" }\n", &["a.rs:1: begins with `What`"]);
        check("a.rs", "/// Fine.\n///\n/// Of it.\n", &["a.rs:3: begins with `Of`"]);
        check("a.rs", "/// ```\n/// // What\n/// ```\n/// Offers it.\n", &[]);
        check("a.rs", "    // It\n    // is none.\n", &["a.rs:1: has `is none`"]);
        check("a.rs", "// It is nonempty.\n", &[]);
        check("crates/old/a.rs", "// What?\n", &[]);
    }

    #[test]
    fn comments_of_all_sources_are_checked() {
        for path in ["a.js", "a.go", "a.proto"] {
            check(path, "let of = 1;\n// Of it.\n", &[&format!("{path}:2: begins with `Of`")]);
        }
        check("a.css", "a { }\n/* Of it. */\n", &["a.css:2: begins with `Of`"]);
        check(
            "A.java",
            "/**\n * Of\n * it is none.\n */\n",
            &["A.java:2: begins with `Of`", "A.java:2: has `is none`"],
        );
        check("a.yml", "#!of\nof: # Of\n# Of it.\n", &["a.yml:3: begins with `Of`"]);
        check("a.toml", "# It\n# is none.\n", &["a.toml:1: has `is none`"]);
    }

    #[test]
    fn documents_are_checked_without_tables_and_code() {
        check("a.md", "# What\n\nA\nthing would do.\n", &["a.md:3: has `would do`"]);
        check("a.md", "```\nWhat\n```\n| What | Of |\n", &[]);
        check("a.md", "<!-- figures x -->\nWhat\n<!-- /figures -->\nOf it\n", &["a.md:4: begins with `Of`"]);
        check("a.md", "The text `is none` of ours.\n", &[]);
        check(
            "a.md",
            "- Of one\n- two\n  Of it\n1. What\n",
            &["a.md:1: begins with `Of`", "a.md:4: begins with `What`"],
        );
    }

    #[test]
    fn long_sentences_are_reported() {
        check("a.md", "One two three four five six. One two; three four five six seven.\n", &[]);
        check("a.md", "One two three\nfour five six seven. One.\n", &["a.md:1: has a sentence of 7 words"]);
    }

    #[test]
    fn rules_of_the_repository_can_be_read() {
        assert!(super::rules().is_ok_and(|rules| !rules.openings.is_empty() && !rules.phrases.is_empty()));
    }
}
