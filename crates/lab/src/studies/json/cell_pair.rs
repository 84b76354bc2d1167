//! Pairs of cells: rows of tables, and sentences derived from them.

use thalweg_measure::page::table::{Columns, TableCell};
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::enumerated;

use super::case::{Case, title};
use super::cells::{Cells, EndpointCell};
use super::endpoint::Endpoint;
use crate::load::verdict::{Better, JudgedRatio, Verdict};

/// Prefix of a ratio that shows no difference.
const DOUBT: &str = "? ";
/// Legend for the prefix.
pub(super) const LEGEND: &str = "A question mark means that no difference is shown.";

/// A cell, and optionally the cell it is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellPair<'c> {
    cells: &'c Cells,
    pub(super) one: &'c EndpointCell,
    pub(super) other: Option<&'c EndpointCell>,
}

/// Columns of a table of cells.
pub(super) type CellColumns<'c> = Columns<'c, CellPair<'c>>;

impl Cells {
    /// Pairs a cell with another.
    pub(super) fn pair<'c>(&'c self, one: &'c EndpointCell, other: Option<&'c EndpointCell>) -> CellPair<'c> {
        CellPair { cells: self, one, other }
    }

    /// Pairs two endpoints at the same case, if both were measured.
    pub(super) fn pair_at(&self, case: Case, one: &Endpoint, other: &Endpoint) -> Option<CellPair<'_>> {
        Some(self.pair(self.at(one, case)?, Some(self.at(other, case)?)))
    }
}

impl<'c> CellPair<'c> {
    /// Compares the time of one call at a time.
    pub(super) fn latency(&self) -> JudgedRatio {
        self.compared(Cells::latency_ratio)
    }

    /// Compares the server's calls per second.
    pub(super) fn rate(&self) -> JudgedRatio {
        self.compared(Cells::rate_ratio)
    }

    /// Returns the time ratio of two cells measured far apart in time.
    pub(super) fn unpaired_ratio(&self) -> Option<String> {
        self.cells.unpaired_ratio(self.one, self.other?)
    }

    /// Pairs the same cell with another one.
    pub(super) fn with_other(&self, other: Option<&'c EndpointCell>) -> Self {
        Self { other, ..*self }
    }

    /// Returns a figure of the other cell.
    pub(super) fn of_other(&self, figure: fn(&EndpointCell) -> Option<f64>) -> Option<f64> {
        figure(self.other?)
    }

    /// Returns the figure divided by the other cell's.
    pub(super) fn quotient(&self, figure: fn(&EndpointCell) -> Option<f64>) -> Option<f64> {
        Some(figure(self.one)? / self.of_other(figure)?)
    }

    fn compared(&self, ratio: fn(&Cells, &EndpointCell, &EndpointCell) -> JudgedRatio) -> JudgedRatio {
        let compared = self.other.map(|other| ratio(self.cells, self.one, other));
        compared.unwrap_or_else(|| JudgedRatio::new(None, 0.0, Better::Less))
    }
}

pub(super) fn message(pair: &CellPair<'_>) -> String {
    title(pair.one.case.shape)
}

pub(super) fn server(pair: &CellPair<'_>) -> String {
    pair.one.endpoint.stack.to_string()
}

pub(super) fn protocol(pair: &CellPair<'_>) -> String {
    pair.one.endpoint.protocol.title().to_owned()
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

/// Formats a ratio with its interval, after a question mark if it shows no difference.
pub(super) fn doubted(compared: JudgedRatio) -> TableCell {
    let field = TableCell::ratio(compared.ratio);
    let is_doubted = compared.ratio.is_some() && !compared.differs();
    if is_doubted { TableCell { text: format!("{DOUBT}{}", field.text), ..field } } else { field }
}

/// Returns whether a ratio in a table has a question mark.
pub(super) fn is_doubted(field: &TableCell) -> bool {
    field.text.starts_with(DOUBT)
}

/// Adds two columns: a ratio and its verdict.
pub(super) fn with_ratio_columns<'c>(
    columns: CellColumns<'c>,
    header: &str,
    compared: fn(&CellPair<'c>) -> JudgedRatio,
) -> CellColumns<'c> {
    let verdict = move |pair: &CellPair<'c>| match compared(pair).verdict {
        Verdict::NotMeasured => String::new(),
        verdict => verdict.name().to_owned(),
    };
    columns.field(header, move |pair| TableCell::ratio(compared(pair).ratio)).words("", verdict)
}

/// Returns a sentence for each group of rows that has factors. A group consists of adjacent rows that are the `same`;
/// the sentence gets the group's row and factors.
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

/// Returns whether both rows are about the same message.
pub(super) fn same_message(one: &CellPair<'_>, next: &CellPair<'_>) -> bool {
    one.one.case.shape == next.one.case.shape
}
