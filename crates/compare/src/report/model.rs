//! What comparing two sides comes to.

use thalweg_measure::figures::ratio_figure;
use thalweg_measure::machine::{Machine, Versions};
use thalweg_measure::statistics::Interval;

use crate::cell::Conditions;
use crate::figure::Figure;
use crate::verdict::Verdict;

/// B beside A.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The base's name.
    pub a: String,
    /// The other one's.
    pub b: String,
    /// Which files, or which servers, A and B are.
    pub origins: [String; 2],
    /// What lies within it is the same.
    pub margin: f64,
    /// Rounds were measured in turns.
    pub is_paired: bool,
    /// By load.
    pub cells: Vec<CellReport>,
    /// Over all loads; empty where there is one.
    pub overall: Vec<Compared>,
    /// By what B fails: nothing, and it does not.
    pub failures: Vec<String>,
    /// Figures that were chosen to judge B by, and that no load has of both sides.
    pub not_measured: Vec<Figure>,
    /// What a reader must know.
    pub warnings: Vec<String>,
    /// Where it was measured, where that is known.
    pub machine: Option<Machine>,
    /// With what.
    pub versions: Option<Versions>,
}

/// One load.
#[derive(Clone, Debug, PartialEq)]
pub struct CellReport {
    /// What was asked for.
    pub conditions: Conditions,
    /// A schedule said when calls were to begin.
    pub is_open: bool,
    /// Those that both sides have.
    pub figures: Vec<Compared>,
    /// The share of calls that failed or never began, of A and of B.
    pub failed_shares: (f64, f64),
    /// Calls that a schedule had and that never began, of A and of B.
    pub dropped: (u64, u64),
}

/// A figure of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Which.
    pub figure: Figure,
    /// The geometric mean of A's rounds; `None` over several loads.
    pub a: Option<f64>,
    /// Of B's.
    pub b: Option<f64>,
    /// Rounds of A and of B that it is told from.
    pub rounds: (usize, usize),
    /// B ÷ A.
    pub ratio: f64,
    /// Where it lies, with a confidence of 95 %; `None` of fewer than three rounds.
    pub interval: Option<Interval>,
    /// What it amounts to.
    pub verdict: Verdict,
    /// B fails if it is worse by more than the margin.
    pub is_gated: bool,
    /// It is, wherever in the interval the truth lies.
    pub is_beyond: bool,
}

impl Compared {
    /// `0.67 × (0.65–0.68)`.
    pub(crate) fn factor(&self) -> String {
        match self.ends() {
            Some(ends) => format!("{} × ({ends})", ratio_figure(self.ratio)),
            None => format!("{} ×", ratio_figure(self.ratio)),
        }
    }

    /// `0.65–0.68`.
    pub(crate) fn ends(&self) -> Option<String> {
        self.interval.map(|it| format!("{}–{}", ratio_figure(it.low), ratio_figure(it.high)))
    }

    /// Whether it makes B fail.
    pub fn fails(&self) -> bool {
        self.is_gated && self.is_beyond
    }
}

impl Report {
    /// The verdict in a word or two: whether B fails, and else what the gated figures say.
    pub fn headline(&self) -> String {
        if !self.failures.is_empty() {
            return "worse".to_owned();
        }
        if !self.not_measured.is_empty() {
            let names: Vec<&str> = self.not_measured.iter().map(|figure| figure.label()).collect();
            return format!("not judged by {}", names.join(" and "));
        }
        let gated = || {
            let all = self.cells.iter().flat_map(|cell| &cell.figures).chain(&self.overall);
            all.filter(|compared| compared.is_gated).map(|compared| compared.verdict)
        };
        let any = |verdict: Verdict| gated().any(|other| other == verdict);
        if gated().next().is_none() {
            "no figure can fail B".to_owned()
        } else if any(Verdict::Worse) {
            "worse, but possibly within the margin".to_owned()
        } else if any(Verdict::CannotTell) {
            Verdict::CannotTell.to_string()
        } else if any(Verdict::Better) {
            Verdict::Better.to_string()
        } else {
            Verdict::Same.to_string()
        }
    }
}
