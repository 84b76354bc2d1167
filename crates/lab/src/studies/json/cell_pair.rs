//! Cells side by side: the rows of tables, and the sentences told from them.

use thalweg_measure::page::table::{Columns, Field};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::enumerated;

use super::case::{Case, title};
use super::cells::{Cells, WayCell};
use super::way::Way;
use crate::load::verdict::{Better, Compared, Verdict};

/// Before a ratio that shows no difference.
const DOUBT: &str = "? ";
/// What it says.
pub(super) const LEGEND: &str = "A question mark means that no difference is shown.";

/// A cell, and what it is compared with, if with anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPair<'c> {
    cells: &'c Cells,
    pub(super) one: &'c WayCell,
    pub(super) other: Option<&'c WayCell>,
}

/// The columns of a table of cells.
pub(super) type CellColumns<'c> = Columns<'c, CellPair<'c>>;

impl Cells {
    /// This cell, compared with another.
    pub(super) fn pair<'c>(&'c self, one: &'c WayCell, other: Option<&'c WayCell>) -> CellPair<'c> {
        CellPair { cells: self, one, other }
    }

    /// A way beside another at the same case, where both were measured.
    pub(super) fn pair_at(&self, case: Case, one: &Way, other: &Way) -> Option<CellPair<'_>> {
        Some(self.pair(self.at(one, case)?, Some(self.at(other, case)?)))
    }
}

impl<'c> CellPair<'c> {
    /// How much longer it takes, one call at a time.
    pub(super) fn latency(&self) -> Compared {
        self.compared(Cells::latency_ratio)
    }

    /// How many more calls its server takes.
    pub(super) fn rate(&self) -> Compared {
        self.compared(Cells::rate_ratio)
    }

    /// How much longer it takes, where both stand apart in time.
    pub(super) fn apart(&self) -> Option<String> {
        self.cells.apart(self.one, self.other?)
    }

    /// The same cell beside another one.
    pub(super) fn beside(&self, other: Option<&'c WayCell>) -> Self {
        Self { other, ..*self }
    }

    /// A figure of what it is compared with.
    pub(super) fn of_other(&self, figure: fn(&WayCell) -> Option<f64>) -> Option<f64> {
        figure(self.other?)
    }

    /// The figure, relative to that of the other.
    pub(super) fn quotient(&self, figure: fn(&WayCell) -> Option<f64>) -> Option<f64> {
        Some(figure(self.one)? / self.of_other(figure)?)
    }

    fn compared(&self, ratio: fn(&Cells, &WayCell, &WayCell) -> Compared) -> Compared {
        let compared = self.other.map(|other| ratio(self.cells, self.one, other));
        compared.unwrap_or_else(|| Compared::new(None, 0.0, Better::Less))
    }
}

pub(super) fn message(pair: &CellPair<'_>) -> String {
    title(pair.one.case.shape)
}

pub(super) fn server(pair: &CellPair<'_>) -> String {
    pair.one.way.stack.to_string()
}

pub(super) fn protocol(pair: &CellPair<'_>) -> String {
    pair.one.way.protocol.title().to_owned()
}

pub(super) fn network(pair: &CellPair<'_>) -> String {
    pair.one.case.network().unwrap_or_else(|| "loopback".to_owned())
}

pub(super) fn median(pair: &CellPair<'_>) -> Option<f64> {
    pair.one.p50()
}

pub(super) fn per_s(pair: &CellPair<'_>) -> Option<f64> {
    pair.one.per_s()
}

pub(super) fn size(bytes: f64) -> String {
    ByteSize(bytes as u64).to_string()
}

/// A ratio with its interval, behind a question mark where no difference is shown.
pub(super) fn doubted(compared: Compared) -> Field {
    let field = Field::ratio(compared.ratio);
    let is_doubted = compared.ratio.is_some() && !compared.differs();
    if is_doubted { Field { text: format!("{DOUBT}{}", field.text), ..field } } else { field }
}

/// A ratio of the table is behind a question mark.
pub(super) fn is_doubted(field: &Field) -> bool {
    field.text.starts_with(DOUBT)
}

/// Two columns: a ratio, and what it amounts to.
pub(super) fn judged<'c>(
    columns: CellColumns<'c>,
    head: &str,
    compared: fn(&CellPair<'c>) -> Compared,
) -> CellColumns<'c> {
    let verdict = move |pair: &CellPair<'c>| match compared(pair).verdict {
        Verdict::NotMeasured => String::new(),
        verdict => verdict.name().to_owned(),
    };
    columns.field(head, move |pair| Field::ratio(compared(pair).ratio)).words("", verdict)
}

/// A sentence for each group of rows that has factors, of the message and the factors. Rows that are the `same` and
/// follow each other are a group.
pub(super) fn sentences<'c>(
    rows: &[CellPair<'c>],
    same: impl Fn(&CellPair<'c>, &CellPair<'c>) -> bool,
    factor: impl Fn(&CellPair<'c>) -> Option<String>,
    sentence: impl Fn(&CellPair<'c>, &str) -> String,
) -> Vec<String> {
    let of_group = |rows: &[CellPair<'c>]| {
        let factors: Vec<String> = rows.iter().filter_map(&factor).collect();
        (!factors.is_empty()).then(|| sentence(&rows[0], &enumerated(&factors)))
    };
    rows.chunk_by(same).filter_map(of_group).collect()
}

/// Both are of one message.
pub(super) fn same_message(one: &CellPair<'_>, next: &CellPair<'_>) -> bool {
    one.one.case.shape == next.one.case.shape
}
