//! Reports on a terminal: coloured warnings and wrapped lines.

use std::env;

use thalweg_measure::text::fitted;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::terminal::{self, Style, Syntax};

/// Writes a report: to a terminal with colours and wrapped lines, and verbatim to anything else.
pub(crate) fn write(output: &OutputFile<'_>, text: &str) -> Result<(), Failure> {
    if !output.is_stdout() || !terminal::stdout_is_terminal() {
        return output.write(Syntax::Text, text);
    }
    let columns = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let fitted = columns.map_or_else(|| text.to_owned(), |columns| fitted(text, columns));
    if terminal::are_colours_wanted(true, |name| env::var_os(name)) {
        return terminal::print_styled(&coloured(&fitted));
    }
    terminal::print(Syntax::Text, &fitted)
}

/// Marks warnings yellow and failures or invalid results red, including continuation lines.
fn coloured(text: &str) -> String {
    let mut style = None;
    let coloured = text.split_inclusive('\n').map(|line| {
        style = match line {
            _ if line.starts_with("NOT VALID") || line.starts_with("FAILED") => Some(Style::BoldRed),
            _ if line.starts_with("! ") || line.starts_with("note  ") => Some(Style::Yellow),
            _ => style.filter(|_| line.starts_with("  ")),
        };
        match (style, line.strip_suffix('\n')) {
            (Some(style), Some(text)) => style.marked(text) + "\n",
            _ => line.to_owned(),
        }
    });
    coloured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_warnings_are_coloured() {
        let yellow = |text: &str| Style::Yellow.marked(text) + "\n";
        let red = |text: &str| Style::BoldRed.marked(text) + "\n";
        let text =
            "B against A\n  rate\n! one\n  two\nend\n  other\nNOT VALID     why\nnote          so\nx\n";
        let expected = [
            "B against A\n  rate\n",
            &yellow("! one"),
            &yellow("  two"),
            "end\n  other\n",
            &red("NOT VALID     why"),
            &yellow("note          so"),
            "x\n",
        ];
        assert_eq!(coloured(text), expected.concat());
    }
}
