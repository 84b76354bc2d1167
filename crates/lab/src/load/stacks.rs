//! Lists the stacks of a study on its page.

use maud::{Markup, html};
use thalweg_measure::page::parts::scrolled;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::wording::counted;

use super::results::StackInfo;
use crate::stack::Setting;
use crate::study::LeftOut;

/// Returns the list as a section.
pub(crate) fn section(heading: &str, stacks: &[StackInfo], left_out: &[LeftOut]) -> Section {
    Section::new("stacks", "", heading, vec![Block::Raw(list(stacks, left_out))])
}

/// Lists each stack with its version and settings, and the unavailable ones.
pub(crate) fn list(stacks: &[StackInfo], left_out: &[LeftOut]) -> Markup {
    html! {
        dl.stacks {
            @for info in stacks {
                dt { (info.stack) }
                dd { (info.version) (settings(info)) }
            }
            @for left_out in left_out {
                dt.failed { (left_out.what) }
                dd.failed { "left out: " (left_out.reason) }
            }
        }
    }
}

/// Returns a stack's settings in a collapsed element.
fn settings(info: &StackInfo) -> Markup {
    if info.settings.is_empty() {
        return html! {};
    }
    html! {
        details.settings {
            summary { (counted(info.settings.len() as u64, "setting")) }
            (scrolled(&html! {
                table {
                    thead { tr { @for head in ["Side", "Setting", "Value", ""] { th scope="col" { (head) } } } }
                    tbody {
                        @for Setting { side, name, value, why } in &info.settings {
                            tr { td { (side) } th.words scope="row" { (name) } td.words { (value) } td.words { (why) } }
                        }
                    }
                }
            }))
        }
    }
}
