//! Compares two sides.

use thalweg_measure::figures::percent;
use thalweg_measure::machine::Machine;
use thalweg_measure::statistics::{Estimate, Interval, Ratio, unpaired_ratio};
use thalweg_measure::validity::{Disturbance, Validity};
use thalweg_measure::wording::counted;

use crate::cell::{Cell, Figures, Round};
use crate::difference::Difference;
use crate::failed_shares::FailedShares;
use crate::figure::Figure;
use crate::report::{CellReport, FigureComparison, Intervals, Report};
use crate::side::Side;
use crate::verdict::Verdict;

/// Options of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Relative difference that counts as equal, for example 0.05.
    pub margin: f64,
    /// Figures by which B fails if they are worse by more than the margin. `None` means p50 and p99 latency, and the
    /// rate of closed loops, because the schedule determines the rate of an open loop.
    pub fail_on: Option<Vec<Figure>>,
    /// Compare sides that are not comparable, and use invalid windows, with a warning.
    pub force: bool,
}

/// Relation between the rounds of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Alternately: rounds of the same number are pairs.
    Paired,
    /// Separately.
    Unpaired,
}

/// Two sides that are not comparable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{a} and {b} are not comparable: {why}")]
pub struct NotComparable {
    a: String,
    b: String,
    why: String,
}

impl NotComparable {
    pub(crate) fn new(a: &str, b: &str, why: String) -> Self {
        Self { a: a.to_owned(), b: b.to_owned(), why }
    }
}

/// Source of a figure's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    Pairs,
    Rounds,
    /// A side has only one run; intervals of runs replace rounds.
    Intervals,
}

/// A figure's values of both sides.
struct Values {
    a: Vec<f64>,
    b: Vec<f64>,
    /// Whether values at the same index are a pair.
    is_paired: bool,
}

/// A figure's ratio, B ÷ A, before it is judged.
struct FigureRatio {
    figure: Figure,
    is_gated: bool,
    values: Values,
    ratio: Ratio,
    estimate: Option<Estimate>,
}

/// Compares B with A.
///
/// The report names every figure that differs by more than the margin, so each figure is one more chance to be wrong.
/// Intervals are therefore widened until all intervals of judged figures hold **together** with 95 % confidence
/// (Bonferroni). With four of them, each misses the truth in 1.25 % of comparisons. So equal servers make B fail in at
/// most 2.5 % of comparisons, however noisy the machine is. In practice it is less than 1 % (test
/// `equal_servers_are_rarely_called_worse`). Figures of one run vary together, and noise must carry the whole interval
/// over the margin.
///
/// Figures that are not judged form a separate family, so they do not widen the intervals of judged ones.
///
/// # Errors
///
/// Returns an error if the sides have no load in common, or were measured on different machines or under different
/// conditions. With [`force`](Options::force), differences only cause a warning.
pub fn compare(a: &Side, b: &Side, pairing: Pairing, options: &Options) -> Result<Report, NotComparable> {
    let disturbance = disturbance(a, b);
    let (a, b) = if options.force { (a.clone(), b.clone()) } else { (a.undisturbed(), b.undisturbed()) };
    let (a, b) = (&a, &b);
    let mut warnings = Vec::new();
    let mut differences = machines(a, b, &mut warnings);
    let (pairs, unmatched) = match_cells(a, b, &mut differences);
    let mut texts: Vec<String> = differences.iter().map(ToString::to_string).collect();
    texts.dedup();
    let differ = |differences: Vec<String>| format!("they differ in {}", differences.join("; "));
    let not_comparable = |why: String| NotComparable::new(&a.name, &b.name, why);
    if pairs.is_empty() {
        return Err(not_comparable("no load has the same conditions on both sides".to_owned()));
    }
    if !texts.is_empty() {
        if !options.force {
            return Err(not_comparable(differ(texts) + "; use --force to compare them anyway"));
        }
        warnings.push(format!("compared although {}", differ(texts)));
    }
    let are_used = if options.force { "used anyway" } else { "not used" };
    warnings.extend(disturbance.as_ref().map(|it| format!("{it} They are {are_used}")));
    warnings.extend(client_limit(a, b));
    warnings.extend(unmatched);
    for (name, side) in [(&a.name, a), (&b.name, b)] {
        warnings.extend(merge_notes(&side.notes).into_iter().map(|note| format!("{name}: {note}")));
    }
    warnings.extend(debug_builds(a, b));
    warnings.extend(pairs.iter().filter_map(|(cell_a, cell_b)| requests(a, b, cell_a, cell_b)));
    let bases: Vec<Basis> = pairs.iter().map(|(a, b)| basis(a, b, pairing)).collect();
    warnings.extend(unpaired_warnings(a, b, &pairs, &bases));
    let ratios: Vec<Vec<FigureRatio>> =
        pairs.iter().zip(&bases).map(|((a, b), basis)| ratios(a, b, *basis, options)).collect();
    let intervals = intervals(&ratios);
    let mut cells = Vec::new();
    for ((cell_a, cell_b), ratios) in pairs.iter().zip(&ratios) {
        let cell = CellReport {
            conditions: cell_a.conditions.clone(),
            is_open: cell_a.is_open,
            figures: ratios.iter().map(|ratio| ratio.compared(intervals, options.margin)).collect(),
            failed: FailedShares::compared(cell_a, cell_b, pairing == Pairing::Paired, intervals.judged),
            dropped: (cell_a.calls().dropped, cell_b.calls().dropped),
        };
        warnings.extend(failed_calls(a, b, &cell));
        cells.push(cell);
    }
    let overall = if cells.len() > 1 { means(&ratios, intervals, options.margin) } else { Vec::new() };
    let is_unanswered =
        disturbance.is_some() && !options.force && !cells.iter().any(CellReport::has_interval);
    let (missing, not_measured) = if is_unanswered { Default::default() } else { missing(&cells, options) };
    warnings.extend(missing);
    let mut report = Report {
        a: a.name.clone(),
        b: b.name.clone(),
        origins: [a.origin.clone(), b.origin.clone()],
        margin: options.margin,
        intervals,
        is_paired: pairing == Pairing::Paired,
        failures: Vec::new(),
        inconclusive_reason: disturbance.filter(|_| is_unanswered).map(|disturbance| disturbance.to_string()),
        not_measured,
        cells,
        overall,
        warnings,
        machine: a.machines.first().or(b.machines.first()).cloned(),
        versions: b.versions.clone().or_else(|| a.versions.clone()),
    };
    report.failures = report.failing();
    Ok(report)
}

/// Returns a warning if the client was the limit in some of the windows used.
fn client_limit(a: &Side, b: &Side) -> Option<String> {
    let rounds: Vec<&Round> =
        [a, b].into_iter().flat_map(|side| &side.cells).flat_map(|cell| &cell.rounds).collect();
    let limited = rounds.iter().filter(|round| round.is_client_limit()).count();
    (limited > 0).then(|| {
        format!(
            "the client was the limit in {limited} of {}: the servers may differ by more; use more CPUs for the client \
             or a lower -c",
            counted(rounds.len() as u64, "window")
        )
    })
}

/// Returns the invalid windows of both sides, if any. Other processes that ran meanwhile are unknown here.
fn disturbance(a: &Side, b: &Side) -> Option<Disturbance> {
    let rounds = [a, b].into_iter().flat_map(|side| &side.cells).flat_map(|cell| &cell.rounds);
    let valid = Validity::default();
    let validity = |round: &Round| if round.is_disturbed() { round.not_valid.clone() } else { valid.clone() };
    let validities: Vec<Validity> = rounds.map(validity).collect();
    Some(Disturbance::of(&validities, &[])?.with_remedy("measure more rounds"))
}

/// Counts the intervals of three kinds: figures of each load, their means over several loads, and shares of failed
/// calls, which are always judged.
fn intervals(ratios: &[Vec<FigureRatio>]) -> Intervals {
    let mut intervals = Intervals { judged: ratios.len(), others: 0 };
    let mut count = |is_gated| if is_gated { intervals.judged += 1 } else { intervals.others += 1 };
    let sure = ratios.iter().flatten().filter(|it| it.ratio.interval.is_some());
    sure.for_each(|it| count(it.is_gated));
    if ratios.len() > 1 {
        in_all(ratios).for_each(|(_, all)| count(all.iter().all(|it| it.is_gated)));
    }
    intervals
}

/// Returns the figures that all loads have, each with its ratios.
fn in_all(ratios: &[Vec<FigureRatio>]) -> impl Iterator<Item = (Figure, Vec<&FigureRatio>)> {
    let of = |ratios: &'_ [FigureRatio], figure| ratios.iter().position(|ratio| ratio.figure == figure);
    Figure::ALL.into_iter().filter_map(move |figure| {
        let all = ratios.iter().map(|ratios| of(ratios, figure).map(|index| &ratios[index]));
        Some((figure, all.collect::<Option<Vec<_>>>()?))
    })
}

/// Returns the differences between machines, and warns if a side does not record its machine.
fn machines(a: &Side, b: &Side, warnings: &mut Vec<String>) -> Vec<Difference> {
    let unknown: Vec<&str> =
        [a, b].into_iter().filter(|side| side.has_unknown_machine).map(|side| side.name.as_str()).collect();
    if !unknown.is_empty() {
        warnings.push(format!("the machine of {} is not recorded", unknown.join(" and ")));
    }
    let all: Vec<&Machine> = a.machines.iter().chain(&b.machines).collect();
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    let differences = others.iter().flat_map(|other| first.differences(other));
    differences.map(|(what, a, b)| Difference { property: format!("the machine's {what}"), a, b }).collect()
}

/// Pairs cells that have equal conditions, and returns warnings about the others. If each side has a single cell, they
/// are a pair and their differing conditions are differences.
fn match_cells<'s>(
    a: &'s Side,
    b: &'s Side,
    all_differences: &mut Vec<Difference>,
) -> (Vec<(&'s Cell, &'s Cell)>, Vec<String>) {
    if let ([one], [other]) = (a.cells.as_slice(), b.cells.as_slice()) {
        let differences = one.conditions.differences(&other.conditions);
        all_differences.extend(differences.into_iter().map(|(what, a, b)| Difference {
            property: what,
            a,
            b,
        }));
        return (vec![(one, other)], Vec::new());
    }
    let find =
        |cell: &Cell, side: &'s Side| side.cells.iter().find(|other| other.conditions == cell.conditions);
    let pairs = a.cells.iter().filter_map(|cell| Some((cell, find(cell, b)?))).collect();
    let mut unmatched = Vec::new();
    for (side, other) in [(a, b), (b, a)] {
        let alone: Vec<&Cell> = side.cells.iter().filter(|cell| find(cell, other).is_none()).collect();
        if let Some(first) = alone.first() {
            unmatched.push(format!(
                "{} of {} have no match in {}, for example {}",
                counted(alone.len() as u64, "load"),
                side.name,
                other.name,
                first.conditions.line()
            ));
        }
    }
    (pairs, unmatched)
}

fn basis(a: &Cell, b: &Cell, pairing: Pairing) -> Basis {
    let is_lone = |cell: &Cell| cell.rounds.len() < 2;
    match pairing {
        Pairing::Paired => Basis::Pairs,
        Pairing::Unpaired if is_lone(a) || is_lone(b) => {
            let has_intervals = a.intervals().count() > 1 && b.intervals().count() > 1;
            if has_intervals { Basis::Intervals } else { Basis::Rounds }
        }
        Pairing::Unpaired => Basis::Rounds,
    }
}

/// Returns a warning if a debug build of thalweg measured, because its client is slow.
fn debug_builds(a: &Side, b: &Side) -> Option<String> {
    let is_debug = |side: &&Side| side.versions.as_ref().is_some_and(|versions| versions.build == "debug");
    let names: Vec<&str> = [a, b].into_iter().filter(is_debug).map(|side| side.name.as_str()).collect();
    let was = if names.len() > 1 { "were" } else { "was" };
    let names = names.join(" and ");
    (!names.is_empty())
        .then(|| format!("{names} {was} measured by a debug build of thalweg: its client is slow"))
}

/// Returns a warning if request sizes differ.
fn requests(a: &Side, b: &Side, cell_a: &Cell, cell_b: &Cell) -> Option<String> {
    let (of_a, of_b) = cell_a.differing_request_sizes(cell_b)?;
    Some(format!(
        "requests differ in size: {} sends {of_a:.0} bytes on average, {} {of_b:.0}",
        a.name, b.name
    ))
}

/// Returns warnings about sides that were not measured alternately.
fn unpaired_warnings(a: &Side, b: &Side, pairs: &[(&Cell, &Cell)], bases: &[Basis]) -> Vec<String> {
    let mut warnings = Vec::new();
    if bases.contains(&Basis::Rounds) {
        warnings.push(format!(
            "{} and {} were not measured alternately, so the ratios include changes of the machine's load",
            a.name, b.name
        ));
    }
    if let Some(index) = bases.iter().position(|basis| *basis == Basis::Intervals) {
        let (cell_a, cell_b) = pairs[index];
        warnings.push(format!(
            "there is only one run of {} or {}: confidence intervals are computed from time intervals within the \
             runs ({} and {}). These are not independent and do not show differences between runs, so the true \
             uncertainty is larger. Measure several runs of each, or use --a and --b",
            a.name,
            b.name,
            cell_a.intervals().count(),
            cell_b.intervals().count()
        ));
    }
    if pairs
        .iter()
        .zip(bases)
        .any(|((a, b), basis)| *basis == Basis::Rounds && a.rounds.len().min(b.rounds.len()) < 3)
    {
        warnings.push("with fewer than 3 rounds per side there is no confidence interval".to_owned());
    }
    warnings
}

impl Options {
    fn gates(&self, figure: Figure, is_open: bool) -> bool {
        match &self.fail_on {
            Some(chosen) => chosen.contains(&figure),
            None => match figure {
                Figure::Rate => !is_open,
                Figure::P50 | Figure::P99 => true,
                _ => false,
            },
        }
    }
}

/// Returns warnings about judged figures that some loads lack, and the chosen figures that all loads lack, by which B
/// cannot pass.
fn missing(cells: &[CellReport], options: &Options) -> (Vec<String>, Vec<Figure>) {
    let (mut warnings, mut of_all) = (Vec::new(), Vec::new());
    let is_judged = |cell: &CellReport| cell.figures.iter().any(|compared| compared.is_gated);
    if options.fail_on.is_none() && cells.iter().all(is_judged) {
        // The defaults apply, and every load has other judged figures: one-way streams have no latency.
        return (warnings, of_all);
    }
    for figure in Figure::ALL {
        let is_judged = |cell: &&CellReport| options.gates(figure, cell.is_open);
        let judged: Vec<&CellReport> = cells.iter().filter(is_judged).collect();
        let has = |cell: &CellReport| cell.figures.iter().any(|compared| compared.figure == figure);
        let without: Vec<&CellReport> = judged.iter().copied().filter(|cell| !has(cell)).collect();
        if without.is_empty() {
            continue;
        }
        let is_of_none = without.len() == judged.len();
        let label = figure.label();
        if is_of_none && options.fail_on.is_some() {
            of_all.push(figure);
        }
        if is_of_none {
            warnings.push(format!("{label} was not measured on both sides, so B is not judged by it"));
        } else {
            let of = |cell: &&CellReport| {
                let load = cell.conditions.line();
                format!("{label} of {load} was not measured on both sides, so B is not judged by it")
            };
            warnings.extend(without.iter().map(of));
        }
    }
    (warnings, of_all)
}

/// Returns the ratios of the figures that both sides have.
fn ratios(a: &Cell, b: &Cell, basis: Basis, options: &Options) -> Vec<FigureRatio> {
    let ratio = |figure| {
        let values = values(a, b, basis, figure);
        let (ratio, estimate) = if values.is_paired {
            let pairs = || values.b.iter().copied().zip(values.a.iter().copied());
            (Ratio::of_pairs(pairs())?, Estimate::of_pairs(pairs()))
        } else {
            (unpaired_ratio(&values.b, &values.a)?, Estimate::of_unpaired(&values.b, &values.a))
        };
        Some(FigureRatio { figure, is_gated: options.gates(figure, a.is_open), values, ratio, estimate })
    };
    Figure::ALL.into_iter().filter_map(ratio).collect()
}

impl FigureRatio {
    /// Judges the ratio by its interval, widened for the size of its family.
    fn compared(&self, intervals: Intervals, margin: f64) -> FigureComparison {
        let comparisons = intervals.family(self.is_gated);
        let interval = if self.values.is_paired {
            self.ratio.corrected_for(comparisons).interval
        } else {
            let widened = self.estimate.map(|estimate| estimate.interval_corrected_for(comparisons));
            self.ratio.interval.and(widened)
        };
        FigureComparison {
            a: Some(geometric_mean(&self.values.a)),
            b: Some(geometric_mean(&self.values.b)),
            rounds: (self.values.a.len(), self.values.b.len()),
            ..judged(self.figure, self.ratio.ratio, interval, self.is_gated, margin)
        }
    }
}

fn judged(
    figure: Figure,
    ratio: f64,
    interval: Option<Interval>,
    is_gated: bool,
    margin: f64,
) -> FigureComparison {
    FigureComparison {
        figure,
        a: None,
        b: None,
        rounds: (0, 0),
        ratio,
        interval,
        verdict: Verdict::of(figure, interval, margin),
        is_gated,
        is_beyond: Verdict::is_beyond(interval, margin),
    }
}

fn values(a: &Cell, b: &Cell, basis: Basis, figure: Figure) -> Values {
    let of_rounds = |cell: &Cell| -> Vec<f64> {
        cell.rounds.iter().filter_map(|round| round.figures.get(figure)).collect()
    };
    let of_intervals = |cell: &Cell| -> Vec<f64> {
        let values: Vec<f64> = cell.intervals().filter_map(|figures: &Figures| figures.get(figure)).collect();
        // Figures without intervals, such as CPU time, come from the whole run.
        if values.is_empty() { of_rounds(cell) } else { values }
    };
    match basis {
        Basis::Pairs => {
            let both = |round: &Round| {
                let other = b.rounds.iter().find(|other| other.number == round.number)?;
                Some((round.figures.get(figure)?, other.figures.get(figure)?))
            };
            let (a, b) = a.rounds.iter().filter_map(both).unzip();
            Values { a, b, is_paired: true }
        }
        Basis::Rounds => Values { a: of_rounds(a), b: of_rounds(b), is_paired: false },
        Basis::Intervals => Values { a: of_intervals(a), b: of_intervals(b), is_paired: false },
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    thalweg_measure::statistics::geometric_mean(values.iter().copied())
}

/// Returns the mean ratios over all cells, for figures that every cell has.
fn means(ratios: &[Vec<FigureRatio>], intervals: Intervals, margin: f64) -> Vec<FigureComparison> {
    let mean = |(figure, all): (Figure, Vec<&FigureRatio>)| {
        let ratio = geometric_mean(&all.iter().map(|it| it.ratio.ratio).collect::<Vec<_>>());
        let is_gated = all.iter().all(|it| it.is_gated);
        let sure = all.iter().map(|it| it.ratio.interval.and(it.estimate));
        let estimate = sure.collect::<Option<Vec<_>>>().and_then(|all| Estimate::mean(&all));
        let interval = estimate.map(|estimate| estimate.interval_corrected_for(intervals.family(is_gated)));
        judged(figure, ratio, interval, is_gated, margin)
    };
    in_all(ratios).map(mean).collect()
}

/// Returns a warning if calls failed or never started.
fn failed_calls(a: &Side, b: &Side, cell: &CellReport) -> Option<String> {
    let (of_a, of_b) = (cell.failed.a, cell.failed.b);
    let (dropped_a, dropped_b) = cell.dropped;
    let dropped = (dropped_a + dropped_b > 0).then(|| {
        format!(" (including {dropped_a} of {} and {dropped_b} of {} that did not start)", a.name, b.name)
    });
    (of_a + of_b > 0.0).then(|| {
        format!(
            "failed {}s: {} of {}, {} of {}{}; rates and latencies count only successful ones, CPU time is divided \
             by all that finished",
            cell.conditions.unit(),
            percent(of_a),
            a.name,
            percent(of_b),
            b.name,
            dropped.unwrap_or_default()
        )
    })
}

/// Merges notes that differ only in their numbers, and counts them.
fn merge_notes(notes: &[String]) -> Vec<String> {
    let without_figures = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let mut groups: Vec<(&String, u64)> = Vec::new();
    for note in notes {
        match groups.iter_mut().find(|(known, _)| without_figures(known) == without_figures(note)) {
            Some((_, count)) => *count += 1,
            None => groups.push((note, 1)),
        }
    }
    let shown = |(note, count): (&String, u64)| match count {
        1 => note.clone(),
        count => format!("{note} (and {} similar ones)", count - 1),
    };
    groups.into_iter().map(shown).collect()
}
