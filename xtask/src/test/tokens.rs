//! A Rust file as words and punctuation, without its tests: enough to see what imports what.

use std::path::Path;

use rustc_lexer::{FrontmatterAllowed, TokenKind};

/// A word or a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) text: String,
    /// The inline modules that it stands in.
    pub(super) inline: Vec<String>,
    /// How many braces are open around it that belong to no module.
    pub(super) depth: usize,
}

/// A file's tokens, and which of its child modules are for tests.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) kept: Vec<Token>,
    pub(super) test_modules: Vec<String>,
}

/// Reads `text`, without `mod tests { … }` and all else that is behind `#[cfg(test)]`.
pub(super) fn read(text: &str) -> Tokens {
    let mut all = words(text);
    let mut tokens = Tokens::default();
    // For each open brace, whether it opened a module.
    let mut braces: Vec<bool> = Vec::new();
    let mut inline: Vec<String> = Vec::new();
    let mut position = 0;
    while position < all.len() {
        if let Some(end) = test_item_end(&all, position) {
            tokens.test_modules.extend(declared_module(&all[position..end]));
            position = end;
            continue;
        }
        let opens_module = position >= 2 && all[position].text == "{" && all[position - 2].text == "mod";
        match all[position].text.as_str() {
            "{" => {
                if opens_module {
                    inline.push(all[position - 1].text.clone());
                }
                braces.push(opens_module);
            }
            "}" => {
                let was_module = braces.pop() == Some(true);
                if was_module {
                    inline.pop();
                }
            }
            _ => {}
        }
        let token = &mut all[position];
        token.inline.clone_from(&inline);
        token.depth = braces.iter().filter(|is_module| !**is_module).count();
        tokens.kept.push(token.clone());
        position += 1;
    }
    tokens
}

/// The name in `mod name;`.
fn declared_module(item: &[Token]) -> Option<String> {
    let is_declaration = |three: &&[Token]| three[0].text == "mod" && three[2].text == ";";
    item.windows(3).find(is_declaration).map(|three| three[1].text.clone())
}

/// Where the item ends that begins at `start`, if it is one for tests.
fn test_item_end(tokens: &[Token], start: usize) -> Option<usize> {
    let text = |position: usize| tokens.get(position).map_or("", |token| token.text.as_str());
    if text(start) == "mod" && text(start + 1) == "tests" && text(start + 2) == "{" {
        return Some(block_end(tokens, start + 2));
    }
    let is_test = ["#", "[", "cfg", "(", "test", ")", "]"]
        .iter()
        .enumerate()
        .all(|(offset, word)| text(start + offset) == *word);
    if !is_test {
        return None;
    }
    let mut position = start + 7;
    while text(position) == "#" {
        position = block_end(tokens, position + 1);
    }
    if text(position) == "pub" {
        position += 1;
        if text(position) == "(" {
            position = block_end(tokens, position);
        }
    }
    let is_use = text(position) == "use";
    loop {
        match text(position) {
            "" => return Some(position),
            ";" => return Some(position + 1),
            "(" | "[" => position = block_end(tokens, position),
            "{" if is_use => position = block_end(tokens, position),
            "{" => return Some(block_end(tokens, position)),
            _ => position += 1,
        }
    }
}

/// Behind the bracket that closes the one at `open`.
fn block_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, token) in tokens[open.min(tokens.len())..].iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return open + offset + 1;
        }
    }
    tokens.len()
}

/// Words and punctuation by line; `::` is one token, and literals and comments are none.
fn words(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let (mut line, mut at) = (1, 0);
    let mut colon = None;
    for lexed in rustc_lexer::tokenize(text, FrontmatterAllowed::No) {
        let end = at + lexed.len as usize;
        let word = &text[at..end];
        let mut push = |text: &str| {
            tokens.push(Token { line, text: text.to_owned(), inline: Vec::new(), depth: 0 });
        };
        match lexed.kind {
            TokenKind::Colon if colon == Some(at) => {
                tokens.pop();
                tokens.push(Token { line, text: "::".to_owned(), inline: Vec::new(), depth: 0 });
            }
            TokenKind::Colon => {
                colon = Some(end);
                push(word);
            }
            TokenKind::Lifetime { .. } => push(&word[1..]),
            TokenKind::Literal { .. }
            | TokenKind::LineComment { .. }
            | TokenKind::BlockComment { .. }
            | TokenKind::Whitespace => {}
            _ => push(word),
        }
        line += word.matches('\n').count();
        at = end;
    }
    tokens
}

/// The module path of a file below `src`: `server/dispatch.rs` is `server::dispatch`.
pub(super) fn module_of(file: &Path) -> Vec<String> {
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

    use super::module_of;

    #[test]
    fn what_is_not_code_is_not_read() {
        let check = |text: &str, words: &str| {
            let kept = super::read(text).kept.into_iter().map(|token| token.text).collect::<Vec<_>>();
            assert_eq!(kept.join(" "), words, "{text}");
        };
        check("// use crate::b;\n/* crate::c /* crate::d */ */ use crate::e;", "use crate :: e ;");
        check("let s = \"\\\" crate::b\n\"; use e;", "let s = ; use e ;");
        check("let s = r#\"crate::b \" \n\"#; use e;", "let s = ; use e ;");
        check("fn f<'a>(c: &'a str) -> char { '\"' }", "fn f < a > ( c : & a str ) - > char { }");
        check("#[cfg(test)] mod tests { use b; mod c { } use d; } use e;", "use e ;");
    }

    #[test]
    fn files_have_module_paths() {
        let check =
            |file: &str, path: &str| assert_eq!(module_of(Path::new(file)).join("::"), path, "{file}");
        check("server/dispatch.rs", "server::dispatch");
        check("server/mod.rs", "server");
        check("server.rs", "server");
        check("lib.rs", "");
    }
}
