//! Tables in Markdown.

/// A table with these heads; figures stand to the left as all else does, as in the rest of the documents.
pub(super) fn markdown(heads: &[&str], rows: &[Vec<String>]) -> String {
    let mut lines = vec![line(heads.iter().copied()), line(heads.iter().map(|_| "---"))];
    lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str))));
    lines.join("\n")
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let mut line = "|".to_owned();
    for cell in cells {
        line.push(' ');
        line.push_str(cell);
        line.push_str(if cell.is_empty() { "|" } else { " |" });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::markdown;

    #[test]
    fn a_table_is_lines_of_cells() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec![String::new(), "2".to_owned()]];
        assert_eq!(markdown(&["", "x"], &rows), "| | x |\n| --- | --- |\n| a | 1 |\n| | 2 |");
    }
}
