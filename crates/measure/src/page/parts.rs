//! Page elements shared by several reports: cards, sortable table cells, button groups and data for scripts.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use thalweg_protobuf::printable;

use crate::figures::{bound, span};

/// Returns a card with a title, a main figure and a line of detail.
pub fn card(title: &str, figure: &str, detail: &str) -> Markup {
    html! {
        div.card {
            h2 { (title) }
            p.figure { (bound(figure)) }
            p { (bound(detail)) }
        }
    }
}

/// Returns a button group for a single choice, with the first button pressed. Each button has a value and a text.
pub fn choices<V: AsRef<str>, T: AsRef<str>>(
    label: &str,
    choice: &str,
    buttons: impl IntoIterator<Item = (V, T)>,
) -> Markup {
    html! {
        div.choices role="group" aria-label=(label) data-choice=(choice) {
            @for (index, (value, text)) in buttons.into_iter().enumerate() {
                button type="button" data-value=(value.as_ref()) aria-pressed=(index == 0) { (text.as_ref()) }
            }
        }
    }
}

/// Returns a text that may break after `/` and `.`, for long names such as those of methods.
pub fn breakable(text: &str) -> Markup {
    html! {
        @for part in text.split_inclusive(['/', '.']) {
            (part)
            @if part.ends_with(['/', '.']) { wbr; }
        }
    }
}

/// Wraps a table in a scrollable container.
pub fn scrolled(table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" { (table) } }
}

/// Returns the first `open` items as a list and the others in a collapsed element.
pub fn folded<T>(items: &[T], open: usize, item: impl Fn(&T) -> Markup) -> Markup {
    let (open, folded) = items.split_at(items.len().min(open));
    let list = |items: &[T]| {
        html! {
            ul {
                @for one in items { li { (item(one)) } }
            }
        }
    };
    html! {
        (list(open))
        @if !folded.is_empty() {
            details { summary { (folded.len()) " more" } (list(folded)) }
        }
    }
}

/// Returns a section of warnings, or nothing without sentences. Those after the first `open` are folded. The class
/// `invalid` makes it an alert.
pub fn warnings_section(class: &str, title: &str, open: usize, sentences: &[impl AsRef<str>]) -> Markup {
    html! {
        @if !sentences.is_empty() {
            section.doubts.(class) role=[(class == "invalid").then_some("alert")] {
                h2 { (title) }
                (folded(sentences, open, |sentence| html! { (bound(sentence.as_ref())) }))
            }
        }
    }
}

/// Returns the section on the method: sentences, and names with their values.
pub fn method_section(sentences: &[String], facts: &[(impl AsRef<str>, String)]) -> Markup {
    html! {
        section #method {
            h2 { "How it was measured" }
            div.columns {
                ul.method { @for sentence in sentences { li { (bound(sentence)) } } }
                dl.facts { @for (name, value) in facts { dt { (name.as_ref()) } dd { (value) } } }
            }
        }
    }
}

/// Returns the name of the study, its date and, if both times are valid, how long it took.
pub fn eyebrow(study: &str, started: &str, ended: &str) -> String {
    let day = started.split('T').next().unwrap_or_default();
    match duration_between(started, ended) {
        Some(took) => format!("{study} · {day}, took {}", span(took)),
        None => format!("{study} · {day}"),
    }
}

/// Returns the time between two RFC 3339 timestamps. `None` if one is invalid or if `ended` precedes `started`.
pub fn duration_between(started: &str, ended: &str) -> Option<Duration> {
    let started = humantime::parse_rfc3339(started).ok()?;
    let ended = humantime::parse_rfc3339(ended).ok()?;
    ended.duration_since(started).ok()
}

/// A file that a page offers for download.
#[derive(Clone, Copy, Debug)]
pub struct Download<'a> {
    /// Suggested file name.
    pub name: &'a str,
    /// Media type, such as `text/csv`.
    pub media: &'a str,
    /// Content, which the page embeds.
    pub content: &'a str,
}

/// Joins the arguments of a command into a shell command line. Quotes arguments with special characters.
pub fn command_line(arguments: impl IntoIterator<Item = String>) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+./:,%@^".contains(c);
    let quoted = |argument: String| {
        if !argument.is_empty() && argument.chars().all(is_plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    };
    arguments.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns the section with the command line that created the page, a button to copy it, and files to download.
///
/// Its id is `source`. An empty command line is omitted.
pub fn source_section(command: &str, downloads: &[Download<'_>]) -> Markup {
    let url = |file: &Download<'_>| {
        format!("data:{};charset=utf-8;base64,{}", file.media, STANDARD.encode(file.content))
    };
    html! {
        section #source {
            h2 { "Command and data" }
            @if !command.is_empty() {
                p.command { code { (command) } button type="button" data-copies=(command) { "Copy" } }
            }
            p.downloads {
                "Download: "
                @for file in downloads { a download=(file.name) href=(url(file)) { (file.name) } " " }
            }
        }
    }
}

/// Returns `data` as JSON for a script element. Escapes `<`, which could end the element or start a comment.
///
/// # Panics
///
/// Panics if `data` cannot be serialized, for example if it has map keys that are not strings.
pub fn script_json(data: &impl Serialize) -> Markup {
    let json = serde_json::to_string(data).expect("page data is serializable as JSON");
    PreEscaped(printable::json(&json.replace('<', "\\u003c")).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_escapes_markup_in_text() {
        let shown = card(r#"<b a="1">&"#, "</p>", "").into_string();
        assert!(shown.contains("&lt;b a=&quot;1&quot;&gt;&amp;") && shown.contains("&lt;/p&gt;"), "{shown}");
    }

    #[test]
    fn names_break_behind_slashes_and_dots() {
        assert_eq!(breakable("a.B/<C> of 1").into_string(), "a.<wbr>B/<wbr>&lt;C&gt; of 1");
    }

    #[test]
    fn script_json_escapes_end_of_script_element() {
        assert_eq!(script_json(&"</script>").into_string(), r#""\u003c/script>""#);
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        let arguments = ["thalweg", "compare", "--a", "./old --port {port}", "it's", "", "--margin=5%"];
        let line = command_line(arguments.map(str::to_owned));
        assert_eq!(line, r"thalweg compare --a './old --port {port}' 'it'\''s' '' --margin=5%");
    }

    #[test]
    fn source_has_command_and_files_in_the_page() {
        let file = Download { name: "a.csv", media: "text/csv", content: "a,ä\n" };
        let shown = source_section("thalweg compare 'a b' <c>", &[file]).into_string();
        assert!(shown.contains("<code>thalweg compare 'a b' &lt;c&gt;</code><button"), "{shown}");
        let link = "<a download=\"a.csv\" href=\"data:text/csv;charset=utf-8;base64,YSzDpAo=\">a.csv</a>";
        assert!(shown.contains(link), "{shown}");
        assert!(!source_section("", &[]).into_string().contains("command\""));
    }

    #[test]
    fn folded_shows_number_of_hidden_items() {
        let list = |open| folded(&[1, 2, 3], open, |n| html! { (n) }).into_string();
        assert_eq!(list(3), "<ul><li>1</li><li>2</li><li>3</li></ul>");
        assert_eq!(
            list(1),
            "<ul><li>1</li></ul><details><summary>2 more</summary><ul><li>2</li><li>3</li></ul></details>"
        );
    }
}
