//! Tables as CSV (RFC 4180, but lines end with LF alone): plain numbers, units in the columns’ names.

/// The columns of a table whose rows are made from values of one kind.
pub(crate) struct Table<'a, R> {
    columns: Vec<(String, Cell<'a, R>)>,
}

type Cell<'a, R> = Box<dyn Fn(&R) -> Option<String> + 'a>;
/// The name of a column, and its cell.
pub(crate) type NamedFigure<V> = (&'static str, fn(&V) -> Option<String>);

impl<'a, R> Table<'a, R> {
    pub(crate) fn new() -> Self {
        Self { columns: Vec::new() }
    }

    /// One more column, which is empty where its cell is `None`.
    pub(crate) fn column(&mut self, name: impl Into<String>, cell: impl Fn(&R) -> Option<String> + 'a) {
        self.columns.push((name.into(), Box::new(cell)));
    }

    /// A column for each figure of a value of the row, if the row has one.
    pub(crate) fn figures<V: 'a>(
        &mut self,
        value: impl Fn(&R) -> Option<V> + Clone + 'a,
        figures: &[NamedFigure<V>],
    ) {
        for &(name, figure) in figures {
            let value = value.clone();
            self.column(name, move |row| figure(&value(row)?));
        }
    }

    /// The head and a line for each row.
    pub(crate) fn csv(&self, rows: impl IntoIterator<Item = R>) -> String {
        const TAKEN: &str = "a vector takes what is written to it, and every row has a cell in each column";
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|(name, _)| name)).expect(TAKEN);
        for row in rows {
            writer
                .write_record(self.columns.iter().map(|(_, cell)| cell(&row).unwrap_or_default()))
                .expect(TAKEN);
        }
        let bytes = writer.into_inner().expect(TAKEN);
        String::from_utf8(bytes).expect("cells are text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_break_a_line_is_quoted() {
        let mut table: Table<'_, &str> = Table::new();
        table.column("name", |row| Some((*row).to_owned()));
        table.column("known", |row| (*row == "unary").then(|| "yes".to_owned()));
        assert_eq!(
            table.csv(["unary", "a,b", "say \"no\"\n", "a\r"]),
            "name,known\nunary,yes\n\"a,b\",\n\"say \"\"no\"\"\n\",\n\"a\r\",\n"
        );
    }
}
