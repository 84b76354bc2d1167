//! Recommendations as sentences, and as short texts for tables.

use thalweg_measure::figures::{ratio_figure, ratio_text};
use thalweg_measure::wording::enumerated;

use super::{Advice, CallChoice, Choices, Job, TransportChoice};
use crate::load::verdict::Verdict;
use crate::load::{Kind, Pattern, Transport, Work};
use crate::record::CallType;

/// Returns the recommendations by job and transport; consecutive sizes with the same one share an entry. `None` if
/// there is nothing to choose from.
pub(crate) fn sentence(choices: &Choices) -> Option<String> {
    let mut groups: Vec<(Transport, Job)> =
        choices.calls.iter().map(|choice| (choice.transport, choice.job)).collect();
    groups.sort_unstable();
    groups.dedup();
    let sentence = |(transport, job)| {
        let of_place = |choice: &&CallChoice| (choice.transport, choice.job) == (transport, job);
        let all: Vec<&CallChoice> = choices.calls.iter().filter(of_place).collect();
        let runs: Vec<_> = all
            .chunk_by(|a, b| is_same_recommendation(a, b))
            .map(|run| recommendation(run, all.len()))
            .collect();
        format!("Over {transport}, {}: {}.", job.name(), runs.join("; "))
    };
    let sentences: Vec<_> = groups.into_iter().map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Formats a call recommendation briefly: `client stream 1.31 × (1.22–1.40)`, `= client, server`, `? client, server`.
pub(crate) fn in_few_words(choice: &CallChoice) -> String {
    let names = |kinds: Vec<Kind>| kinds.into_iter().map(short).collect::<Vec<_>>().join(", ");
    match choice.advice() {
        Advice::Use => {
            let by = choice.next().and_then(|(_, compared)| compared.ratio).map(ratio_text);
            format!("{} {}", short(choice.best), by.unwrap_or_default())
        }
        Advice::Equal => format!("= {}", names(best_and(choice, choice.equal()))),
        Advice::CannotTell => format!("? {}", names(best_and(choice, choice.unclear()))),
    }
}

/// Formats a transport recommendation briefly: `UDS 1.31 × (1.22–1.40)`, `=`, `?`.
pub(crate) fn carrier_in_few_words(choice: &TransportChoice) -> String {
    let by = choice.compared.ratio.map(ratio_text).unwrap_or_default();
    match choice.compared.verdict {
        Verdict::Faster => format!("UDS {by}"),
        Verdict::Slower => format!("TCP {by}"),
        Verdict::NoDifference => format!("= {by}"),
        Verdict::CannotTell => format!("? {by}"),
        Verdict::NotMeasured => "-".to_owned(),
    }
}

/// Returns a short name of a kind for tables and line ends: `unary × 16`.
pub(crate) fn short(kind: Kind) -> String {
    match (kind.work, kind.in_flight) {
        (Work::Call(CallType::Unary), 1) => "lone unary".to_owned(),
        (Work::Call(CallType::Unary), in_flight) => format!("unary × {in_flight}"),
        (Work::Call(call), 1) => call.name().replace('-', " ").replace(" stream", ""),
        (Work::Call(call), in_flight) => format!("{} × {in_flight}", call.name().replace("-stream", "")),
        (Work::Socket(Pattern::Echo), in_flight) => format!("echo × {in_flight}"),
        (Work::Socket(Pattern::Pipelined), _) => "echo pipelined".to_owned(),
        (Work::Socket(Pattern::OneWay), _) => "socket".to_owned(),
    }
}

/// Returns the best call and others, in the order of reports.
pub(crate) fn best_and(choice: &CallChoice, others: impl Iterator<Item = Kind>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = std::iter::once(choice.best).chain(others).collect();
    kinds.sort_unstable();
    kinds
}

/// Returns whether two sizes have the same recommendation.
fn is_same_recommendation(a: &CallChoice, b: &CallChoice) -> bool {
    let open = |choice: &CallChoice| best_and(choice, choice.equal().chain(choice.unclear()));
    // The best call is named only if others are equal to it.
    let also_equal = |choice: &CallChoice| choice.equal().next().map(|_| choice.best);
    match (a.advice(), b.advice()) {
        (Advice::Use, Advice::Use) => a.best == b.best,
        (Advice::Equal, Advice::Equal) => open(a) == open(b),
        (Advice::CannotTell, Advice::CannotTell) => open(a) == open(b) && also_equal(a) == also_equal(b),
        _ => false,
    }
}

/// Returns the text for a run of adjacent sizes, out of `sizes` in total.
fn recommendation(run: &[&CallChoice], sizes: usize) -> String {
    let named = |kinds: Vec<Kind>| enumerated(&kinds.into_iter().map(Kind::phrase).collect::<Vec<_>>());
    let first = run[0];
    let at = match run {
        [one] => format!("at {}", one.size),
        _ if run.len() == sizes => "at every size".to_owned(),
        [first, .., last] => format!("from {} to {}", first.size, last.size),
        [] => String::new(),
    };
    match first.advice() {
        Advice::Use => {
            let ratios = || run.iter().filter_map(|choice| Some(choice.next()?.1.ratio?.ratio));
            let least = ratio_figure(ratios().fold(f64::INFINITY, f64::min));
            let most = ratio_figure(ratios().fold(0.0, f64::max));
            let by = if least == most { least } else { format!("{least} to {most}") };
            format!("use {} {at} ({by} times the next)", first.best.phrase())
        }
        Advice::Equal => format!("{} are equal {at}", named(best_and(first, first.equal()))),
        Advice::CannotTell => {
            let equal: Vec<Kind> = first.equal().collect();
            let also_equal = if equal.is_empty() {
                String::new()
            } else {
                format!(", and {} equal {}", named(equal), first.best.phrase())
            };
            let unclear = named(best_and(first, first.unclear()));
            format!("this study cannot tell {unclear} apart {at}{also_equal}")
        }
    }
}
