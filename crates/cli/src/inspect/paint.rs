//! Colours and terminal width.

use std::ffi::OsString;

use clap::ValueEnum;
use thalweg_inspect::{Paint, Role};

use crate::terminal::{self, Style};

/// Width if neither the terminal nor `COLUMNS` gives one.
const WIDTH_DEFAULT: usize = 100;
/// Minimum width, below which there is no room next to the bytes.
const WIDTH_MIN: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// Returns whether to use colours.
pub(super) fn is_on(choice: ColorChoice, to_stdout: bool) -> bool {
    let is_terminal = to_stdout && terminal::stdout_is_terminal();
    is_wanted(choice, is_terminal, |name| std::env::var_os(name))
}

/// Returns the styles of a tree, or none without colours.
pub(super) fn paint(choice: ColorChoice, to_stdout: bool) -> Paint {
    if is_on(choice, to_stdout) { Paint::with(styled) } else { Paint::default() }
}

/// Styles the text by role, in the marks that [`Escaping`](crate::terminal::Escaping) reads.
fn styled(role: Role, text: &str) -> String {
    let style = match role {
        Role::Plain => return text.to_owned(),
        Role::Tag => Style::Cyan,
        Role::Length => Style::Yellow,
        Role::Payload => Style::Green,
        Role::Name => Style::Bold,
        Role::Problem => Style::BoldRed,
        Role::Remark => Style::Magenta,
        Role::Aside => Style::Dim,
    };
    style.marked(text)
}

fn is_wanted(choice: ColorChoice, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal::are_colours_wanted(is_terminal, variable),
    }
}

/// Returns the number of columns.
pub(super) fn width(to_stdout: bool) -> usize {
    let terminal =
        || terminal_size::terminal_size().map(|(terminal_size::Width(columns), _)| usize::from(columns));
    let columns = if to_stdout && terminal::stdout_is_terminal() { terminal() } else { None };
    let variable = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.or_else(variable).unwrap_or(WIDTH_DEFAULT).max(WIDTH_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_terminal_and_environment() {
        let check = |choice, is_terminal, variables: &[(&str, &str)], expected| {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            assert_eq!(
                is_wanted(choice, is_terminal, variable),
                expected,
                "{choice:?} {is_terminal} {variables:?}"
            );
        };
        check(ColorChoice::Auto, true, &[], true);
        check(ColorChoice::Auto, false, &[], false);
        check(ColorChoice::Auto, true, &[("NO_COLOR", "1")], false);
        check(ColorChoice::Auto, true, &[("NO_COLOR", "")], true);
        check(ColorChoice::Auto, true, &[("TERM", "dumb")], false);
        check(ColorChoice::Always, false, &[("NO_COLOR", "1")], true);
        check(ColorChoice::Never, true, &[], false);
    }

    #[test]
    fn text_is_styled_by_its_role() {
        assert_eq!(styled(Role::Tag, "0A"), Style::Cyan.marked("0A"));
        assert_eq!(styled(Role::Plain, "0A"), "0A");
    }
}
