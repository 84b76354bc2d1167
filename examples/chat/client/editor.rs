//! A line editor.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// `cursor` is the byte offset of the character after the cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Editor {
    text: String,
    cursor: usize,
}

impl Editor {
    pub(crate) fn new(text: String) -> Self {
        Self { cursor: text.len(), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Inserts text. Line ends, which terminals paste as CR, and tabs become spaces.
    pub(crate) fn insert(&mut self, text: &str) {
        for c in text.chars() {
            let c = if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c };
            if !c.is_control() {
                self.text.insert(self.cursor, c);
                self.cursor += c.len_utf8();
            }
        }
    }

    /// Returns whether the key had a meaning.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.text.len(),
            KeyCode::Char('u') if control => self.remove(0),
            KeyCode::Char('w') if control => {
                let kept = self.before_cursor().trim_end();
                self.remove(kept.rfind(' ').map_or(0, |space| space + 1));
            }
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => self.remove(self.before()),
            KeyCode::Delete => {
                let cursor = self.cursor;
                self.cursor = self.behind();
                self.remove(cursor);
            }
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.behind(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return false,
        }
        true
    }

    /// Removes the text between `from` and the cursor.
    fn remove(&mut self, from: usize) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    fn before(&self) -> usize {
        self.before_cursor().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn behind(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &[(KeyCode, KeyModifiers)], text: &str, before_cursor: &str) {
        let mut editor = Editor::new("a\u{e9} word".to_owned());
        for (code, modifiers) in keys {
            assert!(editor.key(KeyEvent::new(*code, *modifiers)), "{code:?}");
        }
        assert_eq!((editor.text(), editor.before_cursor()), (text, before_cursor), "{keys:?}");
    }

    #[test]
    fn pasted_text_becomes_one_line() {
        let mut editor = Editor::default();
        editor.insert("one\rtwo\nthree\tfour\u{1b}[2J");
        assert_eq!(editor.text(), "one two three four[2J");
    }

    #[test]
    fn keys_edit_the_line() {
        const PLAIN: KeyModifiers = KeyModifiers::NONE;
        const CONTROL: KeyModifiers = KeyModifiers::CONTROL;
        check(&[(KeyCode::Char('s'), PLAIN)], "a\u{e9} words", "a\u{e9} words");
        check(&[(KeyCode::Backspace, PLAIN)], "a\u{e9} wor", "a\u{e9} wor");
        check(&[(KeyCode::Char('w'), CONTROL)], "a\u{e9} ", "a\u{e9} ");
        check(&[(KeyCode::Char('w'), CONTROL), (KeyCode::Char('w'), CONTROL)], "", "");
        check(&[(KeyCode::Char('u'), CONTROL)], "", "");
        check(&[(KeyCode::Home, PLAIN), (KeyCode::Right, PLAIN), (KeyCode::Delete, PLAIN)], "a word", "a");
        check(
            &[(KeyCode::Home, PLAIN), (KeyCode::Backspace, PLAIN), (KeyCode::Left, PLAIN)],
            "a\u{e9} word",
            "",
        );
        check(
            &[(KeyCode::End, PLAIN), (KeyCode::Delete, PLAIN), (KeyCode::Right, PLAIN)],
            "a\u{e9} word",
            "a\u{e9} word",
        );
        check(
            &[(KeyCode::Left, PLAIN), (KeyCode::Char('\u{65e5}'), PLAIN)],
            "a\u{e9} wor\u{65e5}d",
            "a\u{e9} wor\u{65e5}",
        );
    }
}
