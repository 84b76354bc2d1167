//! Puts two sides beside each other.

use thalweg_measure::figures::percent;
use thalweg_measure::machine::Machine;
use thalweg_measure::statistics::{Estimate, Interval, Ratio, apart};
use thalweg_measure::wording::counted;

use crate::cell::{Cell, Figures, Round};
use crate::figure::Figure;
use crate::obstacle::Obstacle;
use crate::report::{CellReport, Compared, Report};
use crate::side::Side;
use crate::verdict::Verdict;

/// Of B so much larger a share of the calls may fail, in points of a hundred, as chance has it.
const FAILED_SHARE_MORE_MAX: f64 = 0.01;

/// How two sides are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What lies within it is the same: 0.05.
    pub margin: f64,
    /// Figures by which B fails if they are worse by more than the margin; `None`: the rate of closed loops, and the
    /// 99th percentile of open ones.
    pub fail_on: Option<Vec<Figure>>,
    /// Compare what is not comparable, and say so.
    pub force: bool,
}

/// How rounds of both sides belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// Rounds of the same number were measured in turns, and are pairs.
    Pairs,
    /// Sides were measured apart.
    Apart,
}

/// Two sides that are not comparable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{a} and {b} are not comparable: {why}")]
pub struct Refused {
    a: String,
    b: String,
    why: String,
}

/// What values of both sides are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basis {
    Pairs,
    Rounds,
    /// Each side has one run, and intervals of it stand in for rounds.
    Intervals,
}

/// A figure's values of both sides.
struct Values {
    a: Vec<f64>,
    b: Vec<f64>,
    /// Those of the same place are a pair.
    is_paired: bool,
}

/// Compares B with A.
///
/// # Errors
///
/// For sides that were measured on different machines, or under different conditions; with
/// [`force`](Options::force) that is a warning, as far as there is anything to compare.
pub fn compare(a: &Side, b: &Side, together: Together, options: &Options) -> Result<Report, Refused> {
    let mut warnings = Vec::new();
    let mut obstacles = machines(a, b, &mut warnings);
    let (pairs, unmatched) = matched(a, b, &mut obstacles);
    let mut differences: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
    differences.dedup();
    let differ = |differences: Vec<String>| format!("they differ in {}", differences.join("; "));
    let refused = |why: String| Refused { a: a.name.clone(), b: b.name.clone(), why };
    if pairs.is_empty() {
        return Err(refused("they have no load with the same conditions".to_owned()));
    }
    if !differences.is_empty() {
        if !options.force {
            return Err(refused(differ(differences) + "; use --force to compare them anyway"));
        }
        warnings.push(format!("compared with --force although {}", differ(differences)));
    }
    warnings.extend(unmatched);
    for (name, side) in [(&a.name, a), (&b.name, b)] {
        warnings.extend(grouped(&side.notes).into_iter().map(|note| format!("{name}: {note}")));
    }
    warnings.extend(debug_builds(a, b));
    warnings.extend(pairs.iter().filter_map(|(cell_a, cell_b)| requests(a, b, cell_a, cell_b)));
    let bases: Vec<Basis> = pairs.iter().map(|(a, b)| basis(a, b, together)).collect();
    warnings.extend(apart_warnings(a, b, &pairs, &bases));
    let mut cells = Vec::new();
    let mut estimates: Vec<Vec<(Figure, Estimate)>> = Vec::new();
    for ((cell_a, cell_b), basis) in pairs.iter().zip(bases) {
        let (cell, of_cell) = compared(cell_a, cell_b, basis, options);
        if let Some(warning) = failed_calls(a, b, &cell) {
            warnings.push(warning);
        }
        cells.push(cell);
        estimates.push(of_cell);
    }
    let overall = if cells.len() > 1 { means(&cells, &estimates, options) } else { Vec::new() };
    let (missing, not_measured) = missing(&cells, options);
    warnings.extend(missing);
    Ok(Report {
        a: a.name.clone(),
        b: b.name.clone(),
        origins: [a.origin.clone(), b.origin.clone()],
        margin: options.margin,
        is_paired: together == Together::Pairs,
        failures: failures(a, b, &cells, &overall),
        not_measured,
        cells,
        overall,
        warnings,
        machine: a.machines.first().or(b.machines.first()).cloned(),
        versions: b.versions.clone().or_else(|| a.versions.clone()),
    })
}

/// Differences between machines; who does not say its machine is warned of.
fn machines(a: &Side, b: &Side, warnings: &mut Vec<String>) -> Vec<Obstacle> {
    let unknown: Vec<&str> =
        [a, b].into_iter().filter(|side| side.has_unknown_machine).map(|side| side.name.as_str()).collect();
    if !unknown.is_empty() {
        warnings.push(format!("no machine is recorded for {}", unknown.join(" and ")));
    }
    let all: Vec<&Machine> = a.machines.iter().chain(&b.machines).collect();
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    let differences = others.iter().flat_map(|other| first.differences(other));
    differences.map(|(what, a, b)| Obstacle { what: format!("the machine's {what}"), a, b }).collect()
}

/// Cells of both sides with the same conditions, and what is to be said of those that have none to be compared with. A
/// cell on each side that stand alone are a pair whatever their conditions, which are obstacles then.
fn matched<'s>(
    a: &'s Side,
    b: &'s Side,
    obstacles: &mut Vec<Obstacle>,
) -> (Vec<(&'s Cell, &'s Cell)>, Vec<String>) {
    if let ([one], [other]) = (a.cells.as_slice(), b.cells.as_slice()) {
        let differences = one.conditions.differences(&other.conditions);
        obstacles.extend(differences.into_iter().map(|(what, a, b)| Obstacle { what, a, b }));
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
                "{} of {} without a match in {}, for example {}",
                counted(alone.len() as u64, "load"),
                side.name,
                other.name,
                first.conditions.line()
            ));
        }
    }
    (pairs, unmatched)
}

fn basis(a: &Cell, b: &Cell, together: Together) -> Basis {
    let is_lone = |cell: &Cell| cell.rounds.len() < 2;
    match together {
        Together::Pairs => Basis::Pairs,
        Together::Apart if is_lone(a) || is_lone(b) => {
            let has_intervals = a.intervals.len() > 1 && b.intervals.len() > 1;
            if has_intervals { Basis::Intervals } else { Basis::Rounds }
        }
        Together::Apart => Basis::Rounds,
    }
}

/// Says so where the client was slowed by how it was built.
fn debug_builds(a: &Side, b: &Side) -> Option<String> {
    let is_debug = |side: &&Side| side.versions.as_ref().is_some_and(|versions| versions.build == "debug");
    let names: Vec<&str> = [a, b].into_iter().filter(is_debug).map(|side| side.name.as_str()).collect();
    let was = if names.len() > 1 { "were" } else { "was" };
    let names = names.join(" and ");
    (!names.is_empty())
        .then(|| format!("{names} {was} measured by a debug build of thalweg: its client is slow"))
}

/// Says so where requests are not the same.
fn requests(a: &Side, b: &Side, cell_a: &Cell, cell_b: &Cell) -> Option<String> {
    let (of_a, of_b) = cell_a.other_requests(cell_b)?;
    Some(format!(
        "requests differ in size: {} sends {of_a:.0} bytes on average, {} {of_b:.0}",
        a.name, b.name
    ))
}

/// What is to be said of sides that were measured apart.
fn apart_warnings(a: &Side, b: &Side, pairs: &[(&Cell, &Cell)], bases: &[Basis]) -> Vec<String> {
    let mut warnings = Vec::new();
    if bases.contains(&Basis::Rounds) {
        warnings.push(format!(
            "{} and {} were not measured alternately, so the ratios include changes of the machine's load",
            a.name, b.name
        ));
    }
    if let Some(place) = bases.iter().position(|basis| *basis == Basis::Intervals) {
        let (cell_a, cell_b) = pairs[place];
        warnings.push(format!(
            "there is only one run of {} or {}: confidence intervals are computed from time intervals within the \
             runs ({} and {}). These are not independent and do not show differences between runs, so the true \
             uncertainty is larger. Measure several runs of each, or use --a and --b",
            a.name,
            b.name,
            cell_a.intervals.len(),
            cell_b.intervals.len()
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

fn compared(a: &Cell, b: &Cell, basis: Basis, options: &Options) -> (CellReport, Vec<(Figure, Estimate)>) {
    let mut figures = Vec::new();
    let mut estimates = Vec::new();
    for figure in Figure::ALL {
        let Some((ratio, estimate, values)) = ratio(a, b, basis, figure) else { continue };
        let is_gated = options.gates(figure, a.is_open);
        figures.push(Compared {
            a: Some(geometric_mean(&values.a)),
            b: Some(geometric_mean(&values.b)),
            rounds: (values.a.len(), values.b.len()),
            ..judged(figure, ratio.ratio, ratio.interval, is_gated, options.margin)
        });
        estimates.extend(estimate.map(|estimate| (figure, estimate)));
    }
    let cell = CellReport {
        conditions: a.conditions.clone(),
        is_open: a.is_open,
        figures,
        failed_shares: (a.failed_share(), b.failed_share()),
        dropped: (a.dropped, b.dropped),
    };
    (cell, estimates)
}

impl Options {
    fn gates(&self, figure: Figure, is_open: bool) -> bool {
        match &self.fail_on {
            Some(chosen) => chosen.contains(&figure),
            None => figure == if is_open { Figure::P99 } else { Figure::Rate },
        }
    }
}

/// What is to be said of figures that are judged and that loads do not have; and those that were chosen and that no
/// load has: that B is no worse by them cannot be said.
fn missing(cells: &[CellReport], options: &Options) -> (Vec<String>, Vec<Figure>) {
    let (mut warnings, mut of_all) = (Vec::new(), Vec::new());
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

fn judged(figure: Figure, ratio: f64, interval: Option<Interval>, is_gated: bool, margin: f64) -> Compared {
    Compared {
        figure,
        a: None,
        b: None,
        rounds: (0, 0),
        ratio,
        interval,
        verdict: Verdict::of(figure, interval, margin),
        is_gated,
        is_beyond: Verdict::is_beyond(figure, interval, margin),
    }
}

/// B ÷ A, with what it is told from; `None` where either side does not have the figure.
fn ratio(a: &Cell, b: &Cell, basis: Basis, figure: Figure) -> Option<(Ratio, Option<Estimate>, Values)> {
    let values = values(a, b, basis, figure);
    let (ratio, estimate) = if values.is_paired {
        let pairs = || values.b.iter().copied().zip(values.a.iter().copied());
        (Ratio::of_pairs(pairs())?, Estimate::of_pairs(pairs()))
    } else {
        (apart(&values.b, &values.a)?, Estimate::apart(&values.b, &values.a))
    };
    Some((ratio, estimate, values))
}

fn values(a: &Cell, b: &Cell, basis: Basis, figure: Figure) -> Values {
    let of_rounds = |cell: &Cell| -> Vec<f64> {
        cell.rounds.iter().filter_map(|round| round.figures.get(figure)).collect()
    };
    let of_intervals = |cell: &Cell| -> Vec<f64> {
        let values: Vec<f64> =
            cell.intervals.iter().filter_map(|figures: &Figures| figures.get(figure)).collect();
        // What intervals do not tell, such as processor time, the run does.
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

/// The mean ratio of the cells, of those figures that all of them have.
fn means(cells: &[CellReport], estimates: &[Vec<(Figure, Estimate)>], options: &Options) -> Vec<Compared> {
    let of = |figure: Figure| {
        let found =
            |cell: &CellReport| cell.figures.iter().find(|compared| compared.figure == figure).copied();
        let all: Vec<Compared> = cells.iter().map(found).collect::<Option<_>>()?;
        let ratio = geometric_mean(&all.iter().map(|compared| compared.ratio).collect::<Vec<_>>());
        let of_cell = |estimates: &Vec<(Figure, Estimate)>| {
            estimates.iter().find(|(known, _)| *known == figure).map(|(_, estimate)| *estimate)
        };
        let known: Option<Vec<Estimate>> = estimates.iter().map(of_cell).collect();
        let is_sure = all.iter().all(|compared| compared.interval.is_some());
        let interval =
            known.filter(|_| is_sure).and_then(|known| Estimate::mean(&known)).map(Estimate::interval);
        let is_gated = all.iter().all(|compared| compared.is_gated);
        Some(judged(figure, ratio, interval, is_gated, options.margin))
    };
    Figure::ALL.into_iter().filter_map(of).collect()
}

/// Says so where calls failed, or never began.
fn failed_calls(a: &Side, b: &Side, cell: &CellReport) -> Option<String> {
    let (of_a, of_b) = cell.failed_shares;
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

/// By what B fails.
fn failures(a: &Side, b: &Side, cells: &[CellReport], overall: &[Compared]) -> Vec<String> {
    let mut failures = Vec::new();
    let mut add = |compared: &Compared, of: &str| {
        if compared.is_gated && compared.is_beyond {
            failures.push(format!("{}{of} is {}", compared.figure.label(), compared.factor()));
        }
    };
    for cell in cells {
        let of = if cells.len() > 1 { format!(" of {}", cell.conditions.line()) } else { String::new() };
        cell.figures.iter().for_each(|compared| add(compared, &of));
    }
    for compared in overall {
        add(compared, " over all loads");
    }
    for cell in cells {
        let (of_a, of_b) = cell.failed_shares;
        if of_b > of_a + FAILED_SHARE_MORE_MAX {
            failures.push(format!(
                "{} of the {}s to {} failed{}, and {} of those to {}",
                percent(of_b),
                cell.conditions.unit(),
                b.name,
                if cell.dropped.1 > 0 { " or did not start" } else { "" },
                percent(of_a),
                a.name
            ));
        }
    }
    failures
}

/// Notes that differ in their figures only are one, with how many there are.
fn grouped(notes: &[String]) -> Vec<String> {
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
        count => format!("{note} (and {} more like it)", count - 1),
    };
    groups.into_iter().map(shown).collect()
}
