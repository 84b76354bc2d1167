//! The stacks that took part in a study, for its page.

use maud::{Markup, html};
use thalweg_measure::page::parts::scrolled;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::wording::counted;

use super::results::StackInfo;
use crate::stack::Setting;
use crate::study::LeftOut;

/// The list in a section of its own.
pub(crate) fn section(heading: &str, stacks: &[StackInfo], left_out: &[LeftOut]) -> Section {
    Section::new("stacks", "", heading, vec![Block::Raw(list(stacks, left_out))])
}

/// Each with its version and its settings, and what could not be had.
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

/// How a stack is set up, folded away.
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
