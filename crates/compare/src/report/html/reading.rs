//! Explains names, ratios, verdicts and the method.

use maud::{Markup, html};
use thalweg_measure::figures::{bound, percent, ratio_figure};
use thalweg_measure::page::parts;

use crate::report::model::Report;
use crate::report::words;
use crate::verdict::Verdict;

/// Explains the verdicts.
pub(super) fn section(reports: &[Report]) -> Markup {
    let Some(report) = reports.first() else { return html! {} };
    let (a, b) = (&report.a, if let [one] = reports { one.b.as_str() } else { "the other" });
    let (low, high) = (ratio_figure(1.0 / (1.0 + report.margin)), ratio_figure(1.0 + report.margin));
    let margin = percent(report.margin);
    html! {
        section #reading {
            h2 { "How to read it" }
            p.about {
                "A ratio is the value of " (b) " divided by that of " (a) ": 1.10 means 10" "\u{a0}" "% more. A higher \
                 rate is better; lower latency and CPU time are better. The confidence interval is shown below each \
                 ratio. With 95" "\u{a0}" "% confidence the " (report.intervals.judged) " intervals of judged figures \
                 and of failed calls hold together, and so do the others. Charts range from 0.5 to 2, with the \
                 margin in grey and arrows for values outside. Differences within the margin (" (bound(&margin)) ": \
                 ratios from " (low) " to " (high) ") \
                 are ignored."
            }
            dl.findings.verdicts {
                dt.same { (Verdict::Same) }
                dd { "The whole interval lies within the margin, so any difference is smaller than the margin." }
                dt.better { span.is { (Verdict::Better) } ", " span.worse { span.is { (Verdict::Worse) } } }
                dd { "The interval excludes 1 and extends beyond the margin." }
                dt.worse { span.is { (Verdict::Worse) ", beyond the margin" } }
                dd { "The whole interval lies beyond the margin. If the figure is judged (--fail-on): exit code 3." }
                dt.cannot-tell { (Verdict::CannotTell) }
                dd {
                    "The interval includes 1 and extends beyond the margin, or there is no interval. More rounds, \
                     longer windows or an idle machine may decide it."
                }
            }
        }
    }
}

/// Explains the method and the sides.
pub(super) fn method(reports: &[Report]) -> Markup {
    let mut sentences: Vec<String> = Vec::new();
    for report in reports {
        let side = if reports.len() > 1 { format!("{}: ", report.b) } else { String::new() };
        sentences.push(format!("{side}{}.", words::method(report)));
    }
    sentences.push("The value of a side is the geometric mean of its rounds.".to_owned());
    sentences.push(if reports.iter().all(|report| report.is_paired) {
        "Ratios are computed within pairs of windows, which cancels out slow phases of the machine.".to_owned()
    } else {
        "A ratio is that of the geometric means, with the interval of Welch's t-test on the logarithms. Changes of the \
         machine's load between runs are not cancelled out."
            .to_owned()
    });
    parts::method_section(&sentences, &facts(reports))
}

fn facts(reports: &[Report]) -> Vec<(String, String)> {
    let Some(first) = reports.first() else { return Vec::new() };
    let mut facts = vec![(format!("{}, the base", first.a), first.origins[0].clone())];
    facts.extend(reports.iter().map(|report| (report.b.clone(), report.origins[1].clone())));
    facts.extend(words::machine_and_version(first).map(|machine| ("Measured on".to_owned(), machine)));
    facts
}
