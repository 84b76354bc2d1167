//! What stands on more than one page: cards, fields of tables that sort, buttons to choose with, data for scripts.

use std::time::Duration;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use thalweg_protobuf::printable;

use crate::figures::{bound, short, span};
use crate::findings::Finding;

/// A figure that is worth a glance, and what it is of.
pub fn card(title: &str, figure: &str, detail: &str) -> Markup {
    html! {
        div.card {
            h2 { (title) }
            p.figure { (bound(figure)) }
            p { (bound(detail)) }
        }
    }
}

/// Buttons of which one is pressed, the first at first: what each stands for, and what it says.
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

/// Topics, and a few sentences on each.
pub(crate) fn findings(findings: &[Finding]) -> Markup {
    html! {
        dl.findings {
            @for Finding { topic, text } in findings {
                dt { (topic) }
                dd { p { (bound(text)) } }
            }
        }
    }
}

/// A table that may be wider and higher than the page has room for.
pub fn scrolled(table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" { (table) } }
}

/// The head of a column by which rows can be sorted.
pub(crate) fn sorting_head(name: &str, class: Option<&str>) -> Markup {
    html! { th scope="col" class=[class] { button type="button" { (name) } } }
}

/// A field that sorts by its value, whatever unit it is shown in.
pub fn field(value: Option<f64>, show: impl FnOnce(f64) -> String) -> Markup {
    html! {
        @if let Some(value) = value {
            td data-v=(short(value)) { (show(value)) }
        } @else {
            td data-v="" { "–" }
        }
    }
}

/// The same with the interval of the value below it.
pub fn sure_field(value: Option<f64>, show: impl FnOnce(f64) -> String, interval: Option<String>) -> Markup {
    match (value, interval) {
        (Some(value), Some(interval)) => html! {
            td.sure data-v=(short(value)) { (show(value)) small { (interval) } }
        },
        (value, _) => field(value, show),
    }
}

/// The first few as a list, the others folded away.
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

/// Which study, on which day, and how long it took.
pub fn eyebrow(study: &str, started: &str, ended: &str) -> String {
    let day = started.split('T').next().unwrap_or_default();
    match took(started, ended) {
        Some(took) => format!("{study} · {day}, took {}", span(took)),
        None => format!("{study} · {day}"),
    }
}

/// From when to when; `None` where the texts are no times.
pub(crate) fn took(started: &str, ended: &str) -> Option<Duration> {
    let started = humantime::parse_rfc3339(started).ok()?;
    let ended = humantime::parse_rfc3339(ended).ok()?;
    ended.duration_since(started).ok()
}

/// Data for a script on the page. Within a script element only `<` could end it or begin a comment.
pub fn script_json(data: &impl Serialize) -> Markup {
    let json = serde_json::to_string(data).expect("the data has string keys only");
    PreEscaped(printable::json(&json.replace('<', "\\u003c")).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let shown = card(r#"<b a="1">&"#, "</p>", "").into_string();
        assert!(shown.contains("&lt;b a=&quot;1&quot;&gt;&amp;") && shown.contains("&lt;/p&gt;"), "{shown}");
    }

    #[test]
    fn data_cannot_end_its_script() {
        assert_eq!(script_json(&"</script>").into_string(), r#""\u003c/script>""#);
    }

    #[test]
    fn what_is_folded_away_is_counted() {
        let list = |open| folded(&[1, 2, 3], open, |n| html! { (n) }).into_string();
        assert_eq!(list(3), "<ul><li>1</li><li>2</li><li>3</li></ul>");
        assert_eq!(
            list(1),
            "<ul><li>1</li></ul><details><summary>2 more</summary><ul><li>2</li><li>3</li></ul></details>"
        );
    }
}
