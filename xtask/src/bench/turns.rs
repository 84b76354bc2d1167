//! Windows of several rows that take turns.

use crate::bench::table::median_and_range;
use crate::job::Failure;

/// A window of each row, there and back: the mean of its two.
pub(super) fn there_and_back<T>(
    rows: &[T],
    window: impl Fn(&T) -> Result<f64, Failure>,
) -> Result<Vec<f64>, Failure> {
    let there = rows.iter().map(&window).collect::<Result<Vec<_>, Failure>>()?;
    let back = rows.iter().rev().map(&window).collect::<Result<Vec<_>, Failure>>()?;
    Ok(there.iter().zip(back.iter().rev()).map(|(one, other)| f64::midpoint(*one, *other)).collect())
}

/// Of rounds of rates, one row's over another's, each of the same round: median, least and greatest.
pub(super) fn ratio(rounds: &[Vec<f64>], row: usize, to: usize) -> (f64, f64, f64) {
    median_and_range(rounds.iter().map(|round| round[row] / round[to]).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::{ratio, there_and_back};

    #[test]
    fn each_row_has_its_two_windows() {
        let asked = RefCell::new(Vec::new());
        let window = |row: &f64| {
            asked.borrow_mut().push(*row);
            Ok(row * asked.borrow().len() as f64)
        };
        let rates = there_and_back(&[1.0, 10.0, 100.0], window).unwrap();
        assert_eq!(asked.into_inner(), [1.0, 10.0, 100.0, 100.0, 10.0, 1.0]);
        assert_eq!(rates, [3.5, 35.0, 350.0]);
    }

    #[test]
    fn ratios_are_of_one_round() {
        assert_eq!(ratio(&[vec![1.0, 2.0], vec![2.0, 2.0], vec![6.0, 2.0]], 0, 1), (1.0, 0.5, 3.0));
    }
}
