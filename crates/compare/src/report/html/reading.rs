//! What names, ratios and verdicts mean, and how it was measured.

use maud::{Markup, html};
use thalweg_lab::figures::{bound, percent, ratio_figure};

use crate::report::model::Report;
use crate::report::words;
use crate::verdict::Verdict;

/// What each verdict says of the interval.
pub(super) fn section(reports: &[Report]) -> Markup {
    let Some(report) = reports.first() else { return html! {} };
    let (a, b) = (&report.a, if let [one] = reports { one.b.as_str() } else { "the other" });
    let (low, high) = (ratio_figure(1.0 / (1.0 + report.margin)), ratio_figure(1.0 + report.margin));
    let margin = percent(report.margin);
    html! {
        section #reading {
            h2 { "How to read it" }
            p.about {
                "A ratio is the value of " (b) " divided by that of " (a) ": 1.10 is a tenth more. Of the rate more is \
                 better, and of latency and processor time less. Below it is the interval in which it lies with a \
                 confidence of 95" "\u{a0}" "%; the picture has both from half to double, with the margin in grey and \
                 an arrow for what lies beyond. " "The margin, " (bound(&margin)) ", is what does not matter: ratios \
                 from " (low) " to " (high) "."
            }
            dl.findings.verdicts {
                dt.same { (Verdict::Same) }
                dd { "The interval lies within the margin: whatever the difference is, it is no larger." }
                dt.better { span.is { (Verdict::Better) } ", " span.worse { span.is { (Verdict::Worse) } } }
                dd { "The interval does not hold 1, and reaches beyond the margin." }
                dt.worse { span.is { (Verdict::Worse) ", beyond the margin" } }
                dd { "The interval lies beyond the margin as a whole, of a figure that is judged: exit code 3." }
                dt.cannot-tell { (Verdict::CannotTell) }
                dd {
                    "The interval holds 1 and reaches beyond the margin, or there is none. There may be a difference \
                     of that size, or not: more rounds, longer windows or a quieter machine tell."
                }
            }
        }
    }
}

/// How it was measured, and what the sides are.
pub(super) fn method(reports: &[Report]) -> Markup {
    let mut sentences: Vec<String> = Vec::new();
    for report in reports {
        let side = if reports.len() > 1 { format!("{}: ", report.b) } else { String::new() };
        sentences.push(format!("{side}{}.", words::method(report)));
    }
    sentences.push("The value of a side is the geometric mean of its rounds.".to_owned());
    sentences.push(if reports.iter().all(|report| report.is_paired) {
        "The ratio is that of the pairs: what slowed the machine slowed both windows of a pair, and is not in it."
            .to_owned()
    } else {
        "The ratio is that of the means, with the interval of Welch's t test on the logarithms: what the machine did \
         meanwhile is in it."
            .to_owned()
    });
    html! {
        section #method {
            h2 { "How it was measured" }
            div.columns {
                ul.method { @for sentence in &sentences { li { (bound(sentence)) } } }
                dl.facts { @for (name, value) in facts(reports) { dt { (name) } dd { (value) } } }
            }
        }
    }
}

fn facts(reports: &[Report]) -> Vec<(String, String)> {
    let Some(first) = reports.first() else { return Vec::new() };
    let mut facts = vec![(format!("{}, the base", first.a), first.origins[0].clone())];
    facts.extend(reports.iter().map(|report| (report.b.clone(), report.origins[1].clone())));
    facts.extend(words::place(first).map(|place| ("Measured on".to_owned(), place)));
    facts
}
