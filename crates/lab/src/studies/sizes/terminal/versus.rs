//! Terminal output of a comparison.

use thalweg_measure::figures::{count, percent, ratio_figure, ratio_text, time};
use thalweg_measure::page::table::Columns;
use thalweg_measure::text::wrapped;

use crate::load::gathered::MergedCell;
use crate::load::verdict::{JudgedRatio, MARGIN, Verdict};
use crate::load::{Kind, Transport};
use crate::studies::sizes::compare::findings::answer;
use crate::studies::sizes::compare::{ComparedCell, Ends, StacksCompared};
use crate::study::LeftOut;

/// Returns a table for each kind of call and transport, and a summary.
pub(super) fn tables(comparison: &StacksCompared<'_>) -> String {
    let mut text = wrapped(&format!(
        "Ratios are the operations per second of {} divided by those of the other, from windows of the same round, \
         with their 95 % intervals: above 1 it is faster. `=`: no difference beyond {}; `?`: the study cannot tell.",
        comparison.ours,
        percent(MARGIN - 1.0)
    ));
    text.push('\n');
    let ends = comparison.ends();
    for (kind, transport) in comparison.lines() {
        text += &table(comparison, kind, transport, ends.is_empty());
        text.push('\n');
    }
    for ends in ends {
        text += &replaced(comparison, ends);
        text.push('\n');
    }
    text + &answer(comparison).map(|answer| wrapped(&answer)).unwrap_or_default()
}

/// Returns a line for each stack that was left out.
pub(super) fn left_out(left_out: &[LeftOut]) -> String {
    left_out.iter().map(|it| wrapped(&format!("! {} is left out: {}", it.what, it.reason))).collect()
}

fn table(comparison: &StacksCompared<'_>, kind: Kind, transport: Transport, with_mixed: bool) -> String {
    let mixed = comparison.mixed.iter().filter(|_| with_mixed);
    let mut columns = Columns::<&ComparedCell<'_>>::default()
        .words("size", |cell| cell.size.to_string())
        .words(comparison.ours.to_string(), |cell| figure(&cell.ours, kind));
    for pair in comparison.peers.iter().chain(mixed) {
        columns = columns.words(format!("÷ {pair}"), |cell| ratio(cell.against(pair).map(|it| it.rate)));
    }
    if comparison.line(kind, transport).any(|cell| cell.reference.is_some()) {
        columns = columns.words("of the socket", |cell| {
            cell.reference.map_or("-".to_owned(), |reference| percent(reference.share.ratio))
        });
    }
    let floor = match comparison.noise.rate(kind) {
        floor if floor > 0.0 => format!(", noise floor {} ×", ratio_figure(floor.exp())),
        _ => String::new(),
    };
    let table = columns.table(comparison.line(kind, transport));
    format!("{} over {transport}{floor}\n{}", kind.label(), table.text())
}

/// Returns the gains of replacing both ends of a peer, or either.
fn replaced(comparison: &StacksCompared<'_>, ends: Ends<'_>) -> String {
    let mut columns = Columns::<&ComparedCell<'_>>::default()
        .words("work, size", |cell| format!("{}, {} over {}", cell.kind.label(), cell.size, cell.transport));
    for (index, header) in ["both ends ours", "our client", "our server"].into_iter().enumerate() {
        columns = columns.words(header, move |cell| ratio(ends.gains(cell)[index]));
    }
    let table = columns.table(&comparison.cells);
    format!("In place of {} at both ends, ÷ {}\n{}", ends.both, ends.both, table.text())
}

/// Formats the median latency of lone calls, or the rate of other kinds.
fn figure(cell: &MergedCell<'_>, kind: Kind) -> String {
    let median = cell.latency_named("p50").filter(|_| kind == Kind::LONE_CALL).map(time);
    let rate = cell.rate().map(|rate| format!("{}/s", count(rate)));
    median.or(rate).unwrap_or_else(|| "not measured".to_owned())
}

fn ratio(compared: Option<JudgedRatio>) -> String {
    let Some(compared) = compared else { return "-".to_owned() };
    let text = compared.ratio.map(ratio_text).unwrap_or_default();
    match compared.verdict {
        Verdict::Faster | Verdict::Slower => text,
        Verdict::NoDifference => format!("= {text}"),
        Verdict::CannotTell => format!("? {text}"),
        Verdict::NotMeasured => "not measured".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::analysis::SizesAnalysis;
    use super::super::text;
    use super::*;
    use crate::load::Outcome;
    use crate::load::{LabResults, Point, PointResult, StackInfo, Work};
    use crate::record::CallType;
    use crate::stack::Pair;
    use crate::stack::Stack;

    /// Returns a study of ours and another stack with these rates in the same rounds.
    fn study(rates: &[(f64, f64)]) -> LabResults {
        let mut results = crate::tests::sample::sizes();
        let many = |window: &&PointResult| {
            window.point.work == Work::Call(CallType::Unary) && window.point.in_flight > 1
        };
        let sample = results.points.iter().find(many).unwrap().clone();
        let other = Pair::own("tonic".parse().unwrap());
        results.stacks.push(StackInfo {
            stack: other.server.clone(),
            version: "tonic".to_owned(),
            settings: Vec::new(),
        });
        results.left_out.push(LeftOut::new("grpc-go", "no Go here"));
        let window = |pair: &Pair, round: usize, rate: f64| {
            let mut window = sample.clone().in_round(round as u32);
            window.pair = Some(pair.clone());
            window.point = Point { duration: Duration::from_millis(300), ..window.point };
            if let Outcome::Measured(measured) = &mut window.outcome {
                measured.rate_per_s = rate;
            }
            window
        };
        let rounds = rates.iter().enumerate();
        results.points = rounds
            .flat_map(|(round, &(ours, theirs))| {
                [window(&Pair::ours(), round, ours), window(&other, round, theirs)]
            })
            .collect();
        results
    }

    fn check(rates: &[(f64, f64)], expected: &str) {
        let study = study(rates);
        let text = text(&SizesAnalysis::of(&study));
        assert!(text.contains(expected), "{expected} is not in\n{text}");
        assert!(text.contains("! grpc-go is left out: no Go here"), "{text}");
    }

    #[test]
    fn table_shows_ratio_next_to_our_figure() {
        check(
            &[(200e3, 100e3), (202e3, 100e3), (198e3, 100e3), (200e3, 100e3), (201e3, 100e3)],
            "200 k/s  2.0 × (",
        );
    }

    #[test]
    fn ratio_without_difference_includes_verdict() {
        check(&[(100e3, 103e3), (104e3, 101e3), (99e3, 100e3), (101e3, 100e3), (100e3, 100e3)], "= 1.0");
    }

    #[test]
    fn replaced_end_is_compared_with_original() {
        let mut study =
            study(&[(200e3, 100e3), (202e3, 101e3), (198e3, 99e3), (200e3, 100e3), (201e3, 100e3)]);
        let tonic: Stack = "tonic".parse().unwrap();
        for (client, server, factor) in [(Stack::ours(), tonic.clone(), 1.5), (tonic, Stack::ours(), 0.5)] {
            let theirs =
                study.points.iter().filter(|window| window.pair == Some(Pair::own("tonic".parse().unwrap())));
            let mut mixed: Vec<PointResult> = theirs.cloned().collect();
            for window in &mut mixed {
                window.pair = Some(Pair { client: client.clone(), server: server.clone() });
                let Outcome::Measured(measured) = &mut window.outcome else { unreachable!("it is measured") };
                measured.rate_per_s *= factor;
            }
            study.points.extend(mixed);
        }
        let text = text(&SizesAnalysis::of(&study));
        let row = text.lines().find(|line| line.contains("unary, 16 in flight, ")).unwrap_or_default();
        let gains: Vec<&str> = row.split(" × ").filter_map(|part| part.split(' ').next_back()).collect();
        assert_eq!(gains[..3], ["2.0", "1.50", "0.50"], "{text}");
        assert!(!text.contains("÷ thalweg → tonic"), "{text}");
    }

    #[test]
    fn too_few_windows_are_inconclusive() {
        check(&[(200e3, 100e3)], "? 2.0 ×");
    }
}
