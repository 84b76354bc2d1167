//! Colours, and how wide the terminal is.

use std::ffi::OsString;

use clap::ValueEnum;

use crate::terminal::{self, Style};

/// Where there is no terminal, and nothing says how wide it is.
const WIDTH_DEFAULT: usize = 100;
/// With less there would be no space beside the bytes.
const WIDTH_MIN: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// What a piece of the output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    Tag,
    Length,
    Payload,
    Name,
    Problem,
    Remark,
    Aside,
}

/// Whether there are colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    is_on: bool,
}

impl Paint {
    pub(super) fn new(choice: ColorChoice, to_stdout: bool) -> Self {
        let is_terminal = to_stdout && terminal::stdout_is_terminal();
        Self { is_on: is_wanted(choice, is_terminal, |name| std::env::var_os(name)) }
    }

    /// Whether there are colours.
    pub(super) fn is_on(self) -> bool {
        self.is_on
    }

    /// The text in the style of its role, as [`Escaping`](crate::terminal::Escaping) understands it.
    pub(super) fn paint(self, role: Role, text: &str) -> String {
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
        if self.is_on && !text.is_empty() { style.marked(text) } else { text.to_owned() }
    }
}

fn is_wanted(choice: ColorChoice, is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => terminal::are_colours_wanted(is_terminal, variable),
    }
}

/// How many columns there are.
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
    fn colours_are_for_terminals_that_want_them() {
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
    fn text_without_colours_is_the_text() {
        assert_eq!(Paint { is_on: false }.paint(Role::Tag, "0A"), "0A");
        assert_eq!(Paint { is_on: true }.paint(Role::Tag, "0A"), Style::Cyan.marked("0A"));
        assert_eq!(Paint { is_on: true }.paint(Role::Plain, "0A"), "0A");
    }
}
