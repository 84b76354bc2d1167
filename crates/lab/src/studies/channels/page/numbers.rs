//! The tables of best numbers: one for each stack, kind of call and delay.

use maud::{Markup, html};
use thalweg_measure::figures::{NO_BREAK_SPACE, bound, interval_figure, ratio_figure};
use thalweg_measure::page::parts::sure_field;
use thalweg_measure::wording::counted;

use crate::load::verdict::{Compared, Verdict as Ratios};
use crate::studies::channels::findings::{Verdict, is_behind};
use crate::studies::channels::numbers::{Best, Row};

pub(super) fn tables(verdicts: &[Verdict]) -> Markup {
    html! {
        div.numbers {
            @for verdict in verdicts {
                figure {
                    figcaption { (verdict.stack) ", " (bound(&verdict.place())) }
                    (table(&verdict.numbers.rows))
                }
            }
        }
    }
}

fn table(rows: &[Row]) -> Markup {
    let has_adaptive = rows.iter().any(|row| row.adaptive.is_some());
    html! {
        table {
            thead {
                tr {
                    th scope="col" { "In flight" }
                    th scope="col" { "Best number" }
                    th scope="col" { "Several ÷ one" }
                    @if has_adaptive { th scope="col" { "Adaptive ÷ fixed" } }
                }
            }
            tbody {
                @for row in rows { (of_row(row, has_adaptive)) }
            }
        }
    }
}

fn of_row(row: &Row, has_adaptive: bool) -> Markup {
    let (class, best) = match &row.best {
        Best::Only => ("only", "1".to_owned()),
        Best::One => ("one", "1".to_owned()),
        Best::Several(several) => ("several", several.connections.to_string()),
        Best::CannotTell => ("open", "cannot tell".to_owned()),
    };
    let several = row.told();
    let adaptive = row.adaptive.as_ref();
    html! {
        tr {
            th scope="row" { (row.in_flight) }
            td class={ "best " (class) } { span { (best) } }
            (ratio(several.map(|it| (&it.over_one, it.connections)), "with"))
            @if has_adaptive {
                @let behind = adaptive.is_some_and(is_behind);
                (ratio(adaptive.map(|it| (&it.share, it.of)), if behind { "behind" } else { "of" }))
            }
        }
    }
}

/// A ratio, its interval, and with how many connections.
fn ratio(compared: Option<(&Compared, u32)>, word: &str) -> Markup {
    let below = compared.map(|(compared, connections)| {
        let sure = compared.ratio.and_then(interval_figure).unwrap_or_else(|| "too few windows".to_owned());
        let mark = if compared.verdict == Ratios::CannotTell { "? " } else { "" };
        format!("{mark}{sure}, {word}{NO_BREAK_SPACE}{connections}")
    });
    let ratio = compared.and_then(|(compared, _)| Some(compared.ratio?.ratio));
    sure_field(ratio, |ratio| format!("{} ×", ratio_figure(ratio)), below)
}

/// What the tables mean.
pub(super) fn about(verdicts: &[Verdict]) -> Markup {
    let ways =
        verdicts.iter().flat_map(|it| &it.numbers.rows).map(|row| row.several.len()).max().unwrap_or(0);
    html! {
        p.about {
            "The best number is the fewest connections that are not shown to be slower than the best: several if a \
             gain is shown, 1 if a gain of more than 10 % is ruled out, and “cannot tell” if the intervals allow \
             both. The 95 % interval is shown below each ratio"
            @if ways > 1 {
                ", with Bonferroni correction for the " (counted(ways as u64, "variant")) " compared at a load, so \
                 that it also holds for the one that is picked"
            }
            ". A question mark means that a difference of more than 10 % is neither shown nor ruled out. The adaptive \
             channel is compared with the best number or, if that is unknown, with the fixed number that has the \
             highest rate."
        }
    }
}
