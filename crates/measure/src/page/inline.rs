//! Marked-up sentences.

use maud::{Markup, html};

use crate::figures::bound;

/// Marks up a sentence: `code` in back quotes, `**bold**`, `[text](file)` for a link, and `{name}` for the text of the
/// chosen option.
pub(super) fn inline(text: &str) -> Markup {
    let text = bound(text);
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else {
                @for (index, part) in part.split("**").enumerate() {
                    @if index % 2 == 1 { b { (part) } } @else { (chosen(part)) }
                }
            }
        }
    }
}

fn chosen(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('{').enumerate() {
            @match part.split_once('}') {
                Some((name, rest)) if index > 0 => { span data-says=(name) {} (linked(rest)) }
                _ => { (linked(part)) }
            }
        }
    }
}

fn linked(text: &str) -> Markup {
    html! {
        @match link(text) {
            Some([before, label, target, after]) => { (before) a href=(target) { (label) } (linked(after)) }
            None => { (text) }
        }
    }
}

/// Returns the first link, with its surrounding text. Only elements of the page and local files are linked, because a
/// text may come from untrusted results.
fn link(text: &str) -> Option<[&str; 4]> {
    let (label, rest) = text.split_once("](")?;
    let (before, label) = label.rsplit_once('[')?;
    let (target, after) = rest.split_once(')')?;
    let is_local = target.chars().all(|c| c.is_ascii_alphanumeric() || "#-_./".contains(c));
    is_local.then_some([before, label, target, after])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_code_bold_text_and_chosen_words() {
        assert_eq!(
            inline("in `a<b>`, **now** {statistic} time").into_string(),
            "in <code>a&lt;b&gt;</code>, <b>now</b> <span data-says=\"statistic\"></span> time"
        );
    }

    #[test]
    fn links_other_than_anchors_and_local_files_are_ignored() {
        let shown = |text| inline(text).into_string();
        assert_eq!(shown("[0] of [a<b](#c-1)."), "[0] of <a href=\"#c-1\">a&lt;b</a>.");
        assert_eq!(shown("[a](b/c.html)[d](#e)"), "<a href=\"b/c.html\">a</a><a href=\"#e\">d</a>");
        assert_eq!(shown("[a](javascript:b)"), "[a](javascript:b)");
    }
}
