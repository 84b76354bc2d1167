//! First table of the page: recommended call and transport by message size.

use maud::{Markup, html};
use thalweg_measure::figures::{bound, percent, ratio_text};
use thalweg_measure::page::section::Block;
use thalweg_measure::size::ByteSize;

use super::anchor::anchor;
use crate::load::verdict::{JudgedRatio, MARGIN, Verdict};
use crate::load::{Kind, Transport};
use crate::studies::sizes::choice::words::best_and;
use crate::studies::sizes::choice::{Advice, CallChoice, Choices, Job, TransportChoice};
use crate::studies::sizes::lines::SizesLines;

/// Returns a table with a row per size; `None` if there is nothing to choose from.
pub(super) fn table(analysis: &SizesLines<'_>, choices: &Choices) -> Option<Markup> {
    let columns = columns(analysis, choices);
    let jobs: Vec<Job> =
        Job::ALL.into_iter().filter(|&job| columns.iter().any(|it| it.job() == job)).collect();
    let width = |job| columns.iter().filter(|column| column.job() == job).count();
    let table = html! {
        table.choice {
            thead {
                tr {
                    th scope="col" rowspan="2" { "Size" }
                    @for &job in &jobs {
                        th.job scope="colgroup" colspan=(width(job)) { (title(job)) small { (measure(job)) } }
                    }
                }
                tr { @for column in &columns { th scope="col" class=(column.class()) { (column.title()) } } }
            }
            tbody {
                @for size in analysis.sizes() {
                    tr {
                        th scope="row" { (size) }
                        @for column in &columns { (column.cell(choices, size)) }
                    }
                }
            }
        }
    };
    (!columns.is_empty()).then_some(table)
}

/// A column of the table.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    /// Recommended call.
    Calls(Job, Transport),
    /// Recommended transport.
    Transports(Job),
}

fn columns(analysis: &SizesLines<'_>, choices: &Choices) -> Vec<Column> {
    let mut columns = Vec::new();
    for job in Job::ALL {
        let has_calls = |transport: &Transport| {
            choices.calls.iter().any(|choice| (choice.job, choice.transport) == (job, *transport))
        };
        let calls = analysis.transports().into_iter().filter(has_calls);
        columns.extend(calls.map(|transport| Column::Calls(job, transport)));
        let has_transports = choices.transports.iter().any(|choice| choice.job == job);
        columns.extend(has_transports.then_some(Column::Transports(job)));
    }
    columns
}

impl Column {
    fn job(self) -> Job {
        let (Self::Calls(job, _) | Self::Transports(job)) = self;
        job
    }

    fn title(self) -> String {
        match self {
            Self::Calls(_, transport) => format!("over {transport}"),
            Self::Transports(_) => "TCP or UDS".to_owned(),
        }
    }

    /// Returns the class that separates jobs.
    fn class(self) -> &'static str {
        match self {
            Self::Calls(_, Transport::Tcp) | Self::Transports(Job::Lone) => "first",
            _ => "",
        }
    }

    fn cell(self, choices: &Choices, size: ByteSize) -> Markup {
        let label = format!("{}, {}", title(self.job()), self.title());
        match self {
            Self::Calls(job, transport) => match choices.call(job, transport, size) {
                Some(choice) => call(choice, &label, self.class()),
                None => not_measured(&label),
            },
            Self::Transports(job) => match choices.transport(job, size) {
                Some(choice) => carrier(choice, &label, self.class()),
                None => not_measured(&label),
            },
        }
    }
}

fn title(job: Job) -> &'static str {
    match job {
        Job::OneWay => "Messages one way",
        Job::Answered => "Each message answered",
        Job::Lone => "A lone call",
    }
}

fn measure(job: Job) -> &'static str {
    match job {
        Job::OneWay | Job::Answered => "messages per second",
        Job::Lone => "median time",
    }
}

fn not_measured(label: &str) -> Markup {
    html! { td data-label=(label) { "–" } }
}

fn call(choice: &CallChoice, label: &str, class: &str) -> Markup {
    let advice = choice.advice();
    let (verdict, kinds) = match advice {
        Advice::Use => ("use", vec![choice.best]),
        Advice::Equal => ("equal", best_and(choice, choice.equal())),
        Advice::CannotTell => ("cannot tell", best_and(choice, choice.unclear())),
    };
    // For several calls, shows the nearest one that the best is not known to beat.
    let next = match advice {
        Advice::Use => choice.next(),
        Advice::Equal | Advice::CannotTell => {
            choice.others.iter().copied().find(|(kind, _)| kinds.contains(kind))
        }
    };
    let of = kinds.iter().map(|&kind| linked(kind, choice.transport, choice.size, &name(kind)));
    let below = html! {
        @if let Some((kind, compared)) = next {
            small { (ratio(compared)) " " (name(kind)) }
        }
        @if advice == Advice::CannotTell {
            @for kind in choice.equal() { small { (name(kind)) " equals " (name(choice.best)) } }
        }
    };
    chosen([label, class], verdict, of, &below)
}

fn carrier(choice: &TransportChoice, label: &str, class: &str) -> Markup {
    let TransportChoice { size, kind, compared, .. } = *choice;
    let (verdict, of) = match compared.verdict {
        Verdict::Faster => ("use", vec![Transport::Uds]),
        Verdict::Slower => ("use", vec![Transport::Tcp]),
        Verdict::NoDifference => ("equal", Transport::ALL.to_vec()),
        Verdict::CannotTell | Verdict::NotMeasured => ("cannot tell", Transport::ALL.to_vec()),
    };
    let of = of.into_iter().map(|transport| linked(kind, transport, size, &transport.to_string()));
    let below = html! {
        small { (ratio(compared)) }
        small { "UDS ÷ TCP" @if choice.job != Job::Lone { ", " (name(kind)) } }
    };
    chosen([label, class], verdict, of, &below)
}

/// Returns a field of the table. `below`: the ratios behind the verdict.
fn chosen(
    [label, class]: [&str; 2],
    verdict: &str,
    of: impl Iterator<Item = Markup>,
    below: &Markup,
) -> Markup {
    html! {
        td data-label=(label) class={ (class) " " (verdict.split(' ').next_back().unwrap_or_default()) } {
            i { (verdict) }
            b {
                @for (index, link) in of.enumerate() {
                    @if index > 0 { @if verdict == "equal" { " = " } @else { " or " } }
                    (link)
                }
            }
            (below)
        }
    }
}

fn linked(kind: Kind, transport: Transport, size: ByteSize, text: &str) -> Markup {
    html! { a href={ "#" (anchor(kind, transport, size)) } { (text) } }
}

/// Returns a short name for narrow columns.
fn name(kind: Kind) -> String {
    bound(&kind.label().replace(", one at a time", " alone").replace(", ", " "))
}

/// Returns a ratio with its interval, without line breaks.
fn ratio(compared: JudgedRatio) -> String {
    let text = compared.ratio.map_or("no valid pair of windows".to_owned(), ratio_text);
    text.replace(' ', "\u{a0}").replace('–', "\u{2060}–\u{2060}")
}

/// Explains the verdicts of the table.
pub(super) fn reading() -> Block {
    let margin = percent(MARGIN - 1.0);
    let hints = [
        "Calls are compared with those that do the same work: one-way messages by client and server streams; messages \
         with a response of the same size by unary calls (one at a time or overlapping) and bidi streams. A one-way \
         stream moves more messages than one with responses, so the two are not compared."
            .to_owned(),
        format!(
            "A ratio is the best call’s messages per second ÷ those of the nearest other one, from windows of the same \
             round. The intervals of all pairs of a field’s calls hold together with 95 % confidence, so it does not \
             matter that the best call was picked after measuring. **Use**: faster than every other, by more than the \
             noise floor. **Equal**: the whole interval lies within {margin} of 1. **Cannot tell**: neither; there may \
             be a difference or not. About one in twenty fields without a difference may show one by chance."
        ),
        "Click a name for the windows behind its figures.".to_owned(),
    ];
    let summary = "How “use”, “equal” and “cannot tell” are decided".to_owned();
    Block::Folded(summary, hints.into_iter().map(Block::Hint).collect())
}
