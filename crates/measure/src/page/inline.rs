//! Marked-up sentences.

use maud::{Markup, html};

use crate::figures::bound;

/// Marks up a sentence: `code` in back quotes, `**bold**`, and `{name}` for the text of the chosen option.
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
                Some((name, rest)) if index > 0 => { span data-says=(name) {} (rest) }
                _ => { (part) }
            }
        }
    }
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
}
