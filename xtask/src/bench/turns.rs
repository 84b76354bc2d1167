//! Windows of several rows that alternate, so that drift of the machine affects all of them; and statistics of their
//! figures.

use crate::failure::Result;

/// Measures each row once per round, in alternating order. Returns the values by round and row.
pub(super) fn alternating<R, V>(
    rounds: usize,
    rows: &[R],
    mut window: impl FnMut(&R) -> Result<V>,
) -> Result<Vec<Vec<V>>> {
    let round = |number: usize| {
        if number.is_multiple_of(2) {
            return rows.iter().map(&mut window).collect();
        }
        let mut reversed = rows.iter().rev().map(&mut window).collect::<Result<Vec<V>>>()?;
        reversed.reverse();
        Ok(reversed)
    };
    (0..rounds).map(round).collect()
}

/// Measures each row twice per round, in forward and then reverse order. Returns the means of the two by round and row.
pub(super) fn forward_and_reverse<R>(
    rounds: usize,
    rows: &[R],
    window: impl FnMut(&R) -> Result<f64>,
) -> Result<Vec<Vec<f64>>> {
    let windows = alternating(2 * rounds, rows, window)?;
    let mean = |two: &[Vec<f64>]| {
        two[0].iter().zip(&two[1]).map(|(one, other)| f64::midpoint(*one, *other)).collect()
    };
    Ok(windows.chunks(2).map(mean).collect())
}

/// One row's values over all rounds.
pub(super) fn column(rounds: &[Vec<f64>], row: usize) -> Spread {
    rounds.iter().map(|round| round[row]).collect()
}

/// One row's values divided by another's of the same round.
pub(super) fn ratio(rounds: &[Vec<f64>], row: usize, to: usize) -> Spread {
    rounds.iter().map(|round| round[row] / round[to]).collect()
}

/// Median and range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl FromIterator<f64> for Spread {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(&least), Some(&greatest)) = (values.first(), values.last()) else { return Self::default() };
        let middle = values.len() / 2;
        let below = if values.len().is_multiple_of(2) { middle - 1 } else { middle };
        Self { median: f64::midpoint(values[below], values[middle]), least, greatest }
    }
}

impl Spread {
    /// Formats as `1.05 (1.01–1.09)`.
    pub(super) fn show(&self, formatter: impl Fn(f64) -> String) -> String {
        format!("{} ({})", formatter(self.median), self.range(&formatter))
    }

    /// Formats as `1.01–1.09`.
    pub(super) fn range(&self, formatter: impl Fn(f64) -> String) -> String {
        format!("{}–{}", formatter(self.least), formatter(self.greatest))
    }
}

/// Formats numbers with this many decimals.
pub(super) fn fixed(decimals: usize) -> impl Fn(f64) -> String {
    move |number| format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::{Spread, alternating, fixed, forward_and_reverse, ratio};

    #[test]
    fn each_row_is_measured_forward_and_reverse() {
        let measured_rows = RefCell::new(Vec::new());
        let window = |row: &f64| {
            measured_rows.borrow_mut().push(*row);
            Ok(row * measured_rows.borrow().len() as f64)
        };
        let rates = forward_and_reverse(1, &[1.0, 10.0, 100.0], window).unwrap();
        assert_eq!(measured_rows.into_inner(), [1.0, 10.0, 100.0, 100.0, 10.0, 1.0]);
        assert_eq!(rates, [[3.5, 35.0, 350.0]]);
    }

    #[test]
    fn values_are_in_row_order() {
        let mut number = 0;
        let rounds = alternating(2, &["a", "b"], |row| {
            number += 1;
            Ok(format!("{row}{number}"))
        });
        assert_eq!(rounds.unwrap(), [["a1", "b2"], ["a4", "b3"]]);
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        let spread = ratio(&[vec![1.0, 2.0], vec![2.0, 2.0], vec![6.0, 2.0]], 0, 1);
        assert_eq!(spread, Spread { median: 1.0, least: 0.5, greatest: 3.0 });
        assert_eq!(spread.show(fixed(1)), "1.0 (0.5–3.0)");
    }

    #[test]
    fn median_is_the_middle_value() {
        let of = |values: &[f64]| values.iter().copied().collect::<Spread>().median;
        assert_eq!((of(&[3.0, 1.0, 2.0]), of(&[4.0, 1.0, 3.0, 2.0]), of(&[])), (2.0, 2.5, 0.0));
    }
}
