//! Untrusted text: sanitized for display and for file names.

use std::borrow::Cow;

use crate::proto::Message;
use crate::proto::message::Body;

/// Maximum length of a file name in bytes; most systems allow 255. The rest is for the number that makes names unique.
const FILE_NAME_LENGTH_MAX: usize = 240;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Sanitizes text for a terminal: one line, no escape sequences, no reordering.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| c.is_control() || changes_direction(c)) {
        text.chars().map(sanitize_char).collect::<String>().into()
    } else {
        text.into()
    }
}

fn sanitize_char(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if c.is_control() || changes_direction(c) => '\u{fffd}',
        c => c,
    }
}

/// Returns whether a character breaks lines or changes the text direction, which would show `fdp.exe` as `exe.pdf`
/// (Unicode UAX 9).
fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats the content of a message.
pub(crate) fn message_text(message: &Message) -> Cow<'_, str> {
    match &message.body {
        Some(Body::Text(text)) => sanitize(text),
        Some(Body::File(file)) => {
            let (name, megabytes) = (sanitize(&file.name), file.size as f64 / 1e6);
            format!("[file {name}, {megabytes:.1} MB: /save {}]", message.number).into()
        }
        None => "".into(),
    }
}

/// Formats hours and minutes in UTC.
pub(crate) fn time_of_day(sent_ms: i64) -> String {
    let minutes = sent_ms.rem_euclid(DAY_MS) / 60_000;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// Turns a name from the server into a safe file name: no path, not hidden, and not too long.
pub(crate) fn file_name(name: &str) -> String {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String =
        name.chars().map(|c| if c.is_control() || changes_direction(c) { '_' } else { c }).collect();
    let visible = name.trim_start_matches('.').trim();
    if visible.is_empty() {
        return "file".to_owned();
    }
    let (stem, extension) = split_extension(visible);
    let mut length = stem.len().min(FILE_NAME_LENGTH_MAX.saturating_sub(extension.len()));
    while !stem.is_char_boundary(length) {
        length -= 1;
    }
    format!("{}{extension}", &stem[..length])
}

/// Splits `photo.jpeg` into `photo` and `.jpeg`.
pub(crate) fn split_extension(name: &str) -> (&str, &str) {
    const EXTENSION_LENGTH_MAX: usize = 16;
    match name.rfind('.') {
        Some(dot) if dot > 0 && name.len() - dot <= EXTENSION_LENGTH_MAX => name.split_at(dot),
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::File;

    #[test]
    fn control_characters_are_replaced() {
        let check = |text: &str, as_shown: &str| assert_eq!(sanitize(text), as_shown);
        check(
            "h\u{e9}llo \u{65e5}\u{672c} \u{1f468}\u{200d}\u{1f469}",
            "h\u{e9}llo \u{65e5}\u{672c} \u{1f468}\u{200d}\u{1f469}",
        );
        check("two\nlines\tand a tab", "two lines and a tab");
        check("\x1b[2J\x07\u{9b}1m", "\u{fffd}[2J\u{fffd}\u{fffd}1m");
        check("\u{202e}fdp.exe\u{2066}", "\u{fffd}fdp.exe\u{fffd}");
    }

    #[test]
    fn messages_are_formatted() {
        let check = |body: Body, says: &str| {
            assert_eq!(message_text(&Message { number: 7, body: Some(body), ..Message::default() }), says);
        };
        check(Body::Text("a\x1bb".to_owned()), "a\u{fffd}b");
        let file = File { hash: Vec::new(), name: "\x1bc.txt".to_owned(), size: 1_250_000 };
        check(Body::File(file), "[file \u{fffd}c.txt, 1.2 MB: /save 7]");
    }

    #[test]
    fn file_names_are_made_safe() {
        let check = |name: &str, saved: &str| assert_eq!(file_name(name), saved, "{name:?}");
        check("photo.jpeg", "photo.jpeg");
        check("\u{fc}ber uns.txt", "\u{fc}ber uns.txt");
        check("../../etc/passwd", "passwd");
        check("/etc/passwd", "passwd");
        check("C:\\autoexec.bat", "autoexec.bat");
        check(".bashrc", "bashrc");
        check("...", "file");
        check("..", "file");
        check("a/", "file");
        check("", "file");
        check("a\x1b[2J\n.txt", "a_[2J_.txt");
        check("\u{202e}txt.exe", "_txt.exe");
        check(&format!("{}.txt", "\u{e9}".repeat(200)), &format!("{}.txt", "\u{e9}".repeat(118)));
        check(&".x".repeat(300), &format!("{}.x", "x.".repeat(119)));
    }

    #[test]
    fn times_are_formatted_in_utc() {
        assert_eq!(time_of_day(((23 * 60 + 59) * 60 + 59) * 1000), "23:59");
        assert_eq!(time_of_day(DAY_MS + 60_000), "00:01");
    }
}
