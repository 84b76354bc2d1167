//! Result of a comparison.

use serde::Serialize;
use thalweg_measure::figures::{percent, ratio_figure};
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::statistics::Interval;
use thalweg_measure::wording::enumerated;

use crate::cell::Conditions;
use crate::failed_shares::FailedShares;
use crate::figure::Figure;
use crate::verdict::Verdict;

/// Maximum number of figures of a kind that a headline names.
const NAMED_MAX: usize = 4;
/// Start of the headline if B is better.
const BETTER: &str = "better, ";

/// Report of B compared with A.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Name of the base.
    pub a: String,
    /// Name of the other side.
    pub b: String,
    /// Files or servers of A and B.
    pub origins: [String; 2],
    /// Relative difference that counts as equal.
    pub margin: f64,
    /// Number of simultaneous confidence intervals.
    pub intervals: Intervals,
    /// Whether rounds were measured alternately.
    pub is_paired: bool,
    /// Results of each load.
    pub cells: Vec<CellReport>,
    /// Means over all loads; empty for a single load.
    pub overall: Vec<FigureComparison>,
    /// Reasons why B fails; empty if it passes.
    pub failures: Vec<String>,
    /// Why there is no result: a sentence on the invalid windows, if too few valid ones are left.
    pub inconclusive_reason: Option<String>,
    /// Figures chosen to judge B that no load has on both sides.
    pub not_measured: Vec<Figure>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// Machine, if known.
    pub machine: Option<Machine>,
    /// Versions of the programs, if known.
    pub versions: Option<Versions>,
}

/// Number of confidence intervals in each of two families. The intervals of a family hold together with 95 %
/// confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Intervals {
    /// Intervals of judged figures and of shares of failed calls.
    pub judged: usize,
    /// Intervals of all other figures.
    pub others: usize,
}

impl Intervals {
    pub(crate) fn family(self, is_judged: bool) -> usize {
        if is_judged { self.judged } else { self.others }
    }
}

/// Results of one load.
#[derive(Clone, Debug, PartialEq)]
pub struct CellReport {
    /// The load's settings.
    pub conditions: Conditions,
    /// Whether a schedule determined when calls start (open loop).
    pub is_open: bool,
    /// Figures that both sides have.
    pub figures: Vec<FigureComparison>,
    /// Shares of calls that failed or never started.
    pub failed: FailedShares,
    /// Scheduled calls that never started, of A and of B.
    pub dropped: (u64, u64),
}

/// A figure of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureComparison {
    /// The figure.
    pub figure: Figure,
    /// Geometric mean of A's rounds; `None` for means over several loads.
    pub a: Option<f64>,
    /// Geometric mean of B's rounds; `None` for means over several loads.
    pub b: Option<f64>,
    /// Number of rounds of A and of B.
    pub rounds: (usize, usize),
    /// B ÷ A.
    pub ratio: f64,
    /// Confidence interval of the ratio: 95 % together with the other [`Intervals`] of its family. `None` for fewer
    /// than three rounds.
    pub interval: Option<Interval>,
    /// Verdict on the ratio.
    pub verdict: Verdict,
    /// Whether B fails if it is worse by more than the margin.
    pub is_gated: bool,
    /// Whether the whole interval lies beyond the margin, on either side.
    pub is_beyond: bool,
}

impl CellReport {
    /// Returns whether any of its figures has a confidence interval.
    pub(crate) fn has_interval(&self) -> bool {
        self.figures.iter().any(|compared| compared.interval.is_some())
    }
}

impl FigureComparison {
    /// Formats the ratio with its interval: `0.67 × (0.65–0.68)`.
    pub(crate) fn factor(&self) -> String {
        match self.interval_text() {
            Some(ends) => format!("{} × ({ends})", ratio_figure(self.ratio)),
            None => format!("{} ×", ratio_figure(self.ratio)),
        }
    }

    /// Formats the interval: `0.65–0.68`.
    pub(crate) fn interval_text(&self) -> Option<String> {
        self.interval.map(|it| format!("{}–{}", ratio_figure(it.low), ratio_figure(it.high)))
    }

    /// Returns whether this figure makes B fail.
    pub fn fails(&self) -> bool {
        self.is_gated && self.is_worse_beyond()
    }

    fn is_worse_beyond(&self) -> bool {
        self.is_beyond && self.verdict == Verdict::Worse
    }
}

impl Report {
    /// Returns the verdict in one line: the reasons if B fails, otherwise the verdicts of judged figures. It names
    /// every figure whose whole interval lies beyond the margin, judged or not.
    pub fn headline(&self) -> String {
        let is_better =
            |compared: &FigureComparison| compared.is_beyond && compared.verdict == Verdict::Better;
        let lead = self.lead();
        // Do not repeat what the lead names.
        let is_told = lead.starts_with(BETTER);
        let short = |is_wanted: &dyn Fn(&FigureComparison) -> bool| -> Vec<String> {
            let wanted = self.named().filter(|(_, compared)| is_wanted(compared));
            wanted.map(|(name, compared)| format!("{name} {} ×", ratio_figure(compared.ratio))).collect()
        };
        let worse = short(&|compared| compared.is_worse_beyond() && !compared.is_gated);
        let better = short(&|compared| is_better(compared) && !(compared.is_gated && is_told));
        let mut parts = vec![lead];
        parts.extend(
            (!worse.is_empty()).then(|| format!("worse but not judged: {}", abbreviated_list(&worse))),
        );
        parts.extend((!better.is_empty()).then(|| format!("better: {}", abbreviated_list(&better))));
        parts.join("; ")
    }

    fn lead(&self) -> String {
        if !self.failures.is_empty() {
            return format!("worse, {}", abbreviated_list(&self.failures));
        }
        if let Some(why) = &self.inconclusive_reason {
            return format!("{}: {}", Verdict::CannotTell, why.trim_end_matches('.'));
        }
        if !self.not_measured.is_empty() {
            let names: Vec<&str> = self.not_measured.iter().map(|figure| figure.label()).collect();
            return format!("not judged by {}", names.join(" and "));
        }
        let names = |verdict| self.names(|compared| compared.is_gated && compared.verdict == verdict);
        let (worse, better) = (names(Verdict::Worse), names(Verdict::Better));
        let unsure = self.with_verdict(|verdict| verdict == Verdict::CannotTell);
        let same = self.with_verdict(|verdict| verdict == Verdict::Same);
        if !self.named().any(|(_, compared)| compared.is_gated) {
            "no figure can fail B".to_owned()
        } else if !worse.is_empty() {
            format!("worse, but possibly within the margin: {}", abbreviated_list(&worse))
        } else if unsure.is_empty() && better.is_empty() {
            Verdict::Same.to_string()
        } else if unsure.is_empty() {
            format!("{BETTER}{}", abbreviated_list(&better))
        } else if same.is_empty() && better.is_empty() {
            Verdict::CannotTell.to_string()
        } else {
            let same: Vec<String> = same.into_iter().filter(|label| !unsure.contains(label)).collect();
            let parts = [(Verdict::CannotTell, unsure), (Verdict::Same, same)].into_iter();
            let parts = parts.filter(|(_, names)| !names.is_empty());
            let parts = parts.map(|(verdict, names)| format!("{verdict} by {}", enumerated(&names)));
            parts.collect::<Vec<_>>().join("; ")
        }
    }

    /// Returns whether a judged figure or the share of failed calls is too uncertain to tell if B is worse by more than
    /// the margin.
    pub fn is_inconclusive(&self) -> bool {
        let is_open =
            || !self.with_verdict(|it| matches!(it, Verdict::CannotTell | Verdict::Worse)).is_empty();
        self.failures.is_empty() && (self.inconclusive_reason.is_some() || is_open())
    }

    /// Returns the reasons why B fails.
    pub(crate) fn failing(&self) -> Vec<String> {
        let mut failures = self.names(FigureComparison::fails);
        for cell in self.cells.iter().filter(|cell| cell.failed.fails()) {
            failures.push(format!(
                "{} of the {}s to {} failed{}, and {} of those to {}",
                percent(cell.failed.b),
                cell.conditions.unit(),
                self.b,
                if cell.dropped.1 > 0 { " or did not start" } else { "" },
                percent(cell.failed.a),
                self.a
            ));
        }
        failures
    }

    /// Returns the distinct names of judged figures with a wanted verdict.
    pub fn with_verdict(&self, is_wanted: impl Fn(Verdict) -> bool) -> Vec<String> {
        let figures = self.named().filter(|(_, compared)| compared.is_gated && is_wanted(compared.verdict));
        let mut names: Vec<String> =
            figures.map(|(_, compared)| compared.figure.label().to_owned()).collect();
        // Equal shares of failed calls are not worth a mention.
        let is_told =
            |cell: &&CellReport| cell.failed.verdict() != Verdict::Same && is_wanted(cell.failed.verdict());
        names.extend(
            self.cells.iter().find(is_told).map(|cell| format!("failed {}s", cell.conditions.unit())),
        );
        names.sort_by_key(|name| Figure::ALL.iter().position(|figure| figure.label() == name));
        names.dedup();
        names
    }

    /// Returns the wanted figures with their ratios and intervals: `p50 is 1.08 × (1.07–1.08)`.
    fn names(&self, is_wanted: impl Fn(&FigureComparison) -> bool) -> Vec<String> {
        let wanted = self.named().filter(|(_, compared)| is_wanted(compared));
        wanted.map(|(name, compared)| format!("{name} is {}", compared.factor())).collect()
    }

    /// Returns all figures with their names, including the load if there are several.
    fn named(&self) -> impl Iterator<Item = (String, &FigureComparison)> {
        let several = self.cells.len() > 1;
        let of_cells = self.cells.iter().flat_map(move |cell| {
            let of = if several { format!(" of {}", cell.conditions.line()) } else { String::new() };
            cell.figures.iter().map(move |compared| (format!("{}{of}", compared.figure.label()), compared))
        });
        let overall = self.overall.iter().map(|it| (format!("{} over all loads", it.figure.label()), it));
        of_cells.chain(overall)
    }
}

/// Joins the first names, and counts the rest.
fn abbreviated_list(names: &[String]) -> String {
    let (shown, others) = names.split_at(names.len().min(NAMED_MAX));
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    shown.join(", ") + &more
}
