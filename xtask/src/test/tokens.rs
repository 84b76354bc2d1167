//! A Rust file as words and punctuation. No full parser is needed to see what imports what: words, `::` and braces are
//! enough, once comments, strings, characters and tests are out of the way.

use std::iter::Peekable;
use std::str::Chars;

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

/// Words and punctuation; `::` is one token.
fn words(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let mut push = |text: String| tokens.push(Token { line, text, inline: Vec::new(), depth: 0 });
        match character {
            '\n' => line += 1,
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|next| *next != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => line += skip_block_comment(&mut rest),
            '"' => line += skip_string(&mut rest),
            '\'' => skip_character(&mut rest),
            'r' if is_raw_name(&rest) => {
                // With the mark it is no keyword.
                let mut word = String::from(character);
                word.extend(rest.next());
                while let Some(next) = rest.next_if(|next| is_word(*next)) {
                    word.push(next);
                }
                push(word);
            }
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

/// `r#name`, of which `r` is read. It is a name, whatever word it is.
fn is_raw_name(rest: &Peekable<Chars<'_>>) -> bool {
    let mut ahead = rest.clone();
    ahead.next() == Some('#') && ahead.next().is_some_and(|next| next.is_alphabetic() || next == '_')
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

/// `r"…"`, `r#"…"#` and so on.
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
