//! Findings of a comparison in sentences.

use thalweg_measure::figures::{interval_figure, ratio_figure, ratio_text};
use thalweg_measure::size::ByteSize;
use thalweg_measure::statistics::Ratio;
use thalweg_measure::wording::{capitalised, enumerated};

use crate::load::Kind;
use crate::load::Transport;
use crate::load::verdict::{JudgedRatio, Verdict};
use crate::stack::Pair;
use crate::studies::sizes::compare::{Against, ComparedCell, StacksCompared, Tally};

/// Summary of one kind of call against another pair, over all sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contrast {
    /// The other pair.
    pub(crate) pair: Pair,
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    pub(crate) text: String,
}

/// A cell in which another pair is faster than ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loss {
    /// The faster pair.
    pub(crate) pair: Pair,
    pub(crate) kind: Kind,
    pub(crate) transport: Transport,
    /// Message size.
    pub(crate) size: ByteSize,
    /// Ours ÷ theirs.
    pub(crate) ratio: Ratio,
    /// Whether the ratio is of rates (higher is better) or of median latencies (lower is better).
    pub(crate) is_rate: bool,
}

/// Returns the comparison in one or two sentences; `None` if nothing could be compared.
pub(crate) fn answer(comparison: &StacksCompared<'_>) -> Option<String> {
    let name = comparison.ours.to_string();
    let counted: Vec<(&Pair, Tally)> = comparison
        .peers
        .iter()
        .map(|pair| (pair, comparison.tally(pair)))
        .filter(|(_, tally)| tally.measured() > 0)
        .collect();
    let (&(first, tally), rest) = counted.split_first()?;
    let mut faster =
        vec![format!("{name} is faster than {first} in {} of {} cases", tally.faster, tally.measured())];
    faster.extend(
        rest.iter().map(|(pair, tally)| format!("than {pair} in {} of {}", tally.faster, tally.measured())),
    );
    let mut slower: Vec<String> = counted
        .iter()
        .filter(|(_, tally)| tally.slower > 0)
        .map(|(pair, tally)| format!("{pair} in {}", tally.slower))
        .collect();
    if let Some(first) = slower.first_mut() {
        *first = format!("It is slower than {first}");
        for more in &mut slower[1..] {
            *more = format!("than {more}");
        }
    }
    let slower = if slower.is_empty() {
        "None of them is faster beyond the noise".to_owned()
    } else {
        enumerated(&slower)
    };
    Some(format!("{}. {slower}.", enumerated(&faster)))
}

/// Returns a sentence for each other pair, kind of call and transport.
pub(crate) fn contrasts(comparison: &StacksCompared<'_>) -> Vec<Contrast> {
    let lines = comparison.lines();
    let pairs = comparison.peers.iter().chain(&comparison.mixed);
    pairs.flat_map(|pair| lines.iter().filter_map(|&line| contrast(comparison, pair, line))).collect()
}

/// Returns every cell in which another stack with both its own ends is faster than ours, largest difference first.
pub(crate) fn losses(comparison: &StacksCompared<'_>) -> Vec<Loss> {
    let mut losses = Vec::new();
    for pair in &comparison.peers {
        for (cell, against) in comparison.against(pair) {
            let figures = [(Some(against.rate), true), (against.median, false)];
            losses.extend(figures.into_iter().filter_map(|(compared, is_rate)| {
                let compared = compared.filter(|compared| compared.verdict == Verdict::Slower)?;
                let ratio = compared.ratio?;
                let ComparedCell { kind, transport, size, .. } = *cell;
                Some(Loss { pair: pair.clone(), kind, transport, size, ratio, is_rate })
            }));
        }
    }
    losses.sort_by(|a, b| b.ratio.ratio.ln().abs().total_cmp(&a.ratio.ratio.ln().abs()));
    losses
}

/// Formats verdicts such as `faster in 41, no difference in 9, slower in 3`, and undecided ones if any.
pub(crate) fn verdicts(tally: Tally) -> String {
    let mut parts = vec![
        format!("faster in {}", tally.faster),
        format!("no difference in {}", tally.no_difference),
        format!("slower in {}", tally.slower),
    ];
    if tally.cannot_tell > 0 {
        parts.push(format!("cannot tell in {}", tally.cannot_tell));
    }
    if tally.not_measured > 0 {
        parts.push(format!("not measured in {}", tally.not_measured));
    }
    parts.join(", ")
}

fn contrast(
    comparison: &StacksCompared<'_>,
    pair: &Pair,
    (kind, transport): (Kind, Transport),
) -> Option<Contrast> {
    let found: Vec<(&ComparedCell<'_>, &Against<'_>)> =
        comparison.line(kind, transport).filter_map(|cell| Some((cell, cell.against(pair)?))).collect();
    if found.is_empty() {
        return None;
    }
    let rates: Vec<(ByteSize, JudgedRatio)> =
        found.iter().map(|(cell, against)| (cell.size, against.rate)).collect();
    let clauses = [
        extremes(&rates, Verdict::Faster, &format!("× {pair}’s rate")),
        no_difference(&rates),
        extremes(&rates, Verdict::Slower, "×")
            .map(|slower| format!("{pair} is faster: ours reaches {slower}")),
        sizes_with(&rates, Verdict::CannotTell).map(|sizes| format!("cannot tell at {sizes}")),
        sizes_with(&rates, Verdict::NotMeasured).map(|sizes| format!("not measured at {sizes}")),
    ];
    let mut clauses: Vec<String> = clauses.into_iter().flatten().collect();
    clauses.extend(found.first().and_then(|(cell, against)| median_clause(cell, against)));
    Some(Contrast {
        pair: pair.clone(),
        kind,
        transport,
        text: format!("{} over {transport}: {}.", capitalised(&kind.label()), clauses.join("; ")),
    })
}

/// Returns the largest and smallest difference among the sizes with this verdict.
fn extremes(rates: &[(ByteSize, JudgedRatio)], verdict: Verdict, unit: &str) -> Option<String> {
    let mut of_verdict: Vec<(ByteSize, Ratio)> = rates
        .iter()
        .filter(|(_, compared)| compared.verdict == verdict)
        .filter_map(|&(size, compared)| Some((size, compared.ratio?)))
        .collect();
    of_verdict.sort_by(|(_, a), (_, b)| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let shown = |&(size, ratio): &(ByteSize, Ratio), unit: &str| {
        let interval = interval_figure(ratio).unwrap_or_default();
        format!("{} {unit} ({interval}) at {size}", ratio_figure(ratio.ratio))
    };
    let (most, least) = (of_verdict.first()?, of_verdict.last()?);
    Some(match of_verdict.len() {
        1 => shown(most, unit),
        2 => format!("{}, {}", shown(most, unit), shown(least, "×")),
        more => format!("{}, of {more} sizes the least {}", shown(most, unit), shown(least, "×")),
    })
}

fn no_difference(rates: &[(ByteSize, JudgedRatio)]) -> Option<String> {
    if rates.len() > 1 && rates.iter().all(|(_, compared)| compared.verdict == Verdict::NoDifference) {
        return Some("no difference at any size".to_owned());
    }
    sizes_with(rates, Verdict::NoDifference).map(|sizes| format!("no difference at {sizes}"))
}

fn sizes_with(rates: &[(ByteSize, JudgedRatio)], verdict: Verdict) -> Option<String> {
    let sizes: Vec<String> = rates
        .iter()
        .filter(|(_, compared)| compared.verdict == verdict)
        .map(|(size, _)| size.to_string())
        .collect();
    (!sizes.is_empty()).then(|| enumerated(&sizes))
}

/// Returns a clause on the smallest size's median latency, which matters more than the rate for a lone caller.
fn median_clause(cell: &ComparedCell<'_>, against: &Against<'_>) -> Option<String> {
    let JudgedRatio { ratio, verdict } = against.median?;
    let (ratio, pair, size) = (ratio?, &against.pair, cell.size);
    Some(match verdict {
        Verdict::NoDifference => format!("the median time of a call of {size} does not differ"),
        Verdict::CannotTell => {
            format!("it is unclear whether the median time of a call of {size} differs")
        }
        _ => {
            format!("a call of {size} takes {} the median time of {pair}(lower is better)", ratio_text(ratio))
        }
    })
}
