//! A table to paste into a pull request.

use thalweg_measure::printable;

use super::model::{FigureComparison, Report};
use super::words;

/// Formats a report as blocks separated by empty lines.
pub fn markdown(report: &Report) -> String {
    let (a, b) = (escaped(&report.a), escaped(&report.b));
    let mut blocks = vec![format!("### {b} against {a}: {}", report.headline())];
    let several = report.cells.len() > 1;
    for cell in &report.cells {
        let line = escaped(&cell.conditions.line());
        blocks.push(if several { format!("**{line}**") } else { line });
        blocks.push(table(&a, &b, &cell.figures));
    }
    if !report.overall.is_empty() {
        blocks.push(format!("**all {} loads, geometric mean**", report.cells.len()));
        blocks.push(table(&a, &b, &report.overall));
    }
    if !report.warnings.is_empty() {
        let warnings = report.warnings.iter().map(|warning| format!("> ⚠ {}", escaped(warning)));
        blocks.push(warnings.collect::<Vec<_>>().join("\n>\n"));
    }
    let machine = words::machine_and_version(report)
        .map(|machine| format!(". {}", escaped(&machine)))
        .unwrap_or_default();
    blocks.push(format!("<sub>{}{machine}</sub>", words::method(report)));
    blocks.join("\n\n") + "\n"
}

fn table(a: &str, b: &str, figures: &[FigureComparison]) -> String {
    let headers = [
        format!("| | {a} | {b} | {b} ÷ {a} | 95 % | verdict |"),
        "| --- | ---: | ---: | ---: | --- | --- |".to_owned(),
    ];
    let row = |compared: &FigureComparison| {
        let mut cells = words::row(compared);
        if compared.is_gated {
            cells[5] = format!("**{}**", cells[5]);
        }
        format!("| {} |", cells.join(" | "))
    };
    headers.into_iter().chain(figures.iter().map(row)).collect::<Vec<_>>().join("\n")
}

/// Escapes characters that would end a cell or start markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable::line(&text.replace('\n', " ")).chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn markdown_special_characters_are_escaped() {
        assert_eq!(escaped("a|b_c\n<d>"), "a\\|b\\_c \\<d\\>");
        assert_eq!(escaped("\r\x1b"), "\\\\r\\\\u{1b}");
    }
}
