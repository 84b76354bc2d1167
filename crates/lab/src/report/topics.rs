//! Findings on a page.

use maud::{Markup, html};
use thalweg_measure::figures::bound;

use crate::findings::Finding;

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
