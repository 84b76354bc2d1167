use serde_json::{Value, json};

/// Result of a benchmark, printed now and rendered into documents later.
pub(crate) struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    is_of_rounds: bool,
}

impl Table {
    pub(crate) fn new(
        title: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Self { title: title.into(), columns, rows, is_of_rounds: false }
    }

    /// Marks a table of single rounds: it goes to the results file only, while documents show the summary.
    pub(crate) fn of_rounds(self) -> Self {
        Self { is_of_rounds: true, ..self }
    }

    pub(crate) fn is_of_rounds(&self) -> bool {
        self.is_of_rounds
    }

    /// Prints the first column left-aligned, the others right-aligned.
    pub(crate) fn print(&self) {
        println!("{}\n", self.title);
        let lines = || [&self.columns].into_iter().chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for row in lines() {
            let cell = |(column, cell): (usize, &String)| match column {
                0 => format!("{cell:<width$}", width = widths[0]),
                _ => format!("{cell:>width$}", width = widths[column]),
            };
            let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
            println!("{}", cells.join("  ").trim_end());
        }
    }

    pub(crate) fn json(&self) -> Value {
        let mut table = json!({"title": self.title, "heads": self.columns, "rows": self.rows});
        if self.is_of_rounds {
            table["of_rounds"] = true.into();
        }
        table
    }
}

/// Formats `12345.6` as `12,346`.
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

/// Formats with three significant digits: `1.23`, `16.0`, `160`.
pub(crate) fn three_digits(number: f64) -> String {
    match number {
        number if number < 9.995 => format!("{number:.2}"),
        number if number < 99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in
            [(0.4, "0"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.0, "1,234,567"), (-1000.0, "-1,000")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
