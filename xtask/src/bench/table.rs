//! Small tables on the terminal.

use serde_json::{Value, json};

/// What a benchmark found: on the terminal now, in a document later.
pub(crate) struct Table {
    title: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    is_of_rounds: bool,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>, heads: &[&str], rows: Vec<Vec<String>>) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { title: title.into(), heads, rows, is_of_rounds: false }
    }

    /// What every round found, for the results file: documents have what comes of it.
    pub(crate) fn of_rounds(title: impl Into<String>, heads: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self { is_of_rounds: true, ..Self::new(title, heads, rows) }
    }

    pub(crate) fn is_of_rounds(&self) -> bool {
        self.is_of_rounds
    }

    pub(crate) fn print(&self) {
        println!("{}\n", self.title);
        let heads: Vec<&str> = self.heads.iter().map(String::as_str).collect();
        print(&heads, &self.rows);
    }

    pub(crate) fn json(&self) -> Value {
        let mut table = json!({"title": self.title, "heads": self.heads, "rows": self.rows});
        if self.is_of_rounds {
            table["of_rounds"] = true.into();
        }
        table
    }
}

/// Prints rows of equally many cells under `heads`: the first column to the left, the others to the right.
pub(crate) fn print(heads: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    for row in [&heads].into_iter().chain(rows) {
        let cell = |(column, cell): (usize, &String)| match column {
            0 => format!("{cell:<width$}", width = widths[0]),
            _ => format!("{cell:>width$}", width = widths[column]),
        };
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        println!("{}", cells.join("  ").trim_end());
    }
}

/// `12345.6` as `12,346`.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < -0.5 { format!("-{text}") } else { text }
}

/// The middle value, and the least and the greatest.
pub(crate) fn median_and_range(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(greatest)) = (values.first(), values.last()) else { return (0.0, 0.0, 0.0) };
    let middle = values.len() / 2;
    let median = if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    };
    (median, *least, *greatest)
}

#[cfg(test)]
mod tests {
    use super::{grouped, median_and_range};

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in
            [(0.4, "0"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567"), (-1000.0, "-1,000")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median_and_range(vec![3.0, 1.0, 2.0]), (2.0, 1.0, 3.0));
        assert_eq!(median_and_range(vec![4.0, 1.0, 3.0, 2.0]), (2.5, 1.0, 4.0));
    }
}
