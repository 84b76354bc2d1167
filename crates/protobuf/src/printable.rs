//! Makes untrusted text safe to print.
//!
//! Names, messages and other strings from a peer or a file may contain characters that a terminal interprets, or that
//! display a line in a different order. These functions replace them with readable escapes.
//!
//! ```
//! use thalweg_protobuf::printable;
//!
//! let message = "not found\x1b[2J\r\nOK";
//! assert_eq!(printable::line(message), r"not found\u{1b}[2J\r\nOK");
//! assert_eq!(printable::json("\"\u{202e}\""), r#""\u202e""#);
//! ```

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal interprets this character or it can mislead a reader: control characters (C0, DEL and C1), line
/// and paragraph separators, and Unicode's text direction controls.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes unprintable characters as Rust does (`\u{1b}`, `\r`), except line feeds and tabs.
pub fn text(text: &str) -> Cow<'_, str> {
    replaced(
        text,
        |c| is_unprintable(c) && !matches!(c, '\n' | '\t'),
        |c, out| out.extend(c.escape_default()),
    )
}

/// Escapes unprintable characters like [`text`], and also line feeds and tabs: the result is one line.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, is_unprintable, |c, out| out.extend(c.escape_default()))
}

/// Escapes unprintable characters of a JSON document beyond those that JSON requires. The document's value does not
/// change.
pub fn json(document: &str) -> Cow<'_, str> {
    // In JSON, ASCII control characters are white space or invalid. DEL is valid in a string.
    let is_escaped = |c| is_unprintable(c) && c >= '\u{7f}';
    replaced(document, is_escaped, |c, out| {
        // Writing to a `String` cannot fail. All these characters are in the Basic Multilingual Plane.
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    })
}

/// Replaces unprintable characters of a page, except line feeds and tabs, with the replacement character. It is safe
/// in HTML, scripts and styles.
pub fn html(page: &str) -> Cow<'_, str> {
    replaced(page, |c| is_unprintable(c) && !matches!(c, '\n' | '\t'), |_, out| out.push('\u{fffd}'))
}

/// Maximum length of an excerpt, in bytes.
const EXCERPT_LEN_MAX: usize = 60;

/// Returns `text`, or at most its first 60 bytes and an ellipsis, to quote in an error.
pub fn excerpt(text: &str) -> String {
    if text.len() <= EXCERPT_LEN_MAX {
        return text.to_owned();
    }
    let mut end = EXCERPT_LEN_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// Returns the text with the selected characters rewritten; borrows it if there are none.
fn replaced(text: &str, is_meant: impl Fn(char) -> bool, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_meant) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_meant(c) { write(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidirectional_characters_are_escaped() {
        let check = |given: &str, as_text: &str, as_line: &str| {
            assert_eq!((&*text(given), &*line(given)), (as_text, as_line), "{given:?}");
        };
        check("", "", "");
        check("naïve ☃ \\ C:\\dir", "naïve ☃ \\ C:\\dir", "naïve ☃ \\ C:\\dir");
        check("a\n\tb", "a\n\tb", "a\\n\\tb");
        check("\x1b[2J\x07\r\n", "\\u{1b}[2J\\u{7}\\r\n", "\\u{1b}[2J\\u{7}\\r\\n");
        check("\u{7f}\u{85}\u{9b}31m", "\\u{7f}\\u{85}\\u{9b}31m", "\\u{7f}\\u{85}\\u{9b}31m");
        for c in
            ['\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}']
        {
            assert_eq!(text(&c.to_string()), format!("\\u{{{:x}}}", u32::from(c)));
        }
        // Joiners are part of words and emoji.
        check("\u{200d}\u{200c}", "\u{200d}\u{200c}", "\u{200d}\u{200c}");
    }

    #[test]
    fn escaped_documents_keep_their_meaning() {
        let document = "{\n\t\"a\u{9b}\u{7f}\": \"\u{202e}\u{2066}é\"\r\n}";
        let escaped = json(document);
        assert_eq!(escaped, "{\n\t\"a\\u009b\\u007f\": \"\\u202e\\u2066é\"\r\n}");
        assert_eq!(html("a\u{202e}\x1b\n\t"), "a\u{fffd}\u{fffd}\n\t");
        assert!(matches!(json("{\"a\": \"é\\n\"}"), Cow::Borrowed(_)));
    }

    #[test]
    fn excerpts_are_cut_between_characters() {
        assert_eq!(excerpt("short"), "short");
        let long = "aé".repeat(100);
        let cut = excerpt(&long);
        assert!(cut.ends_with("…") && cut.len() < 70 && long.starts_with(cut.trim_end_matches('…')));
    }
}
