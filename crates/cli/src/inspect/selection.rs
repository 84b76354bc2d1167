//! Selection of calls in a capture.

use std::ops::RangeInclusive;

use thalweg_inspect::capture::Call;

/// A value of `--call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// Numbers in the list of calls.
    Numbers(RangeInclusive<u64>),
    /// Part of a method name.
    Method(String),
}

impl std::str::FromStr for Selection {
    type Err = String;

    /// Parses `7`, `3-9` or part of a method name.
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return match text {
                "" => {
                    Err("empty call selection; give a number, a range (3-9) or part of a method name"
                        .to_owned())
                }
                _ => Ok(Self::Method(text.trim_start_matches('/').to_owned())),
            };
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("invalid call number `{text}`; expected 7 or 3-9"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("invalid range `{text}`; use {last}-{first}"));
        }
        Ok(Self::Numbers(first..=last))
    }
}

/// Returns whether the call is selected. Without selections all are.
pub(super) fn has(selections: &[Selection], number: u64, call: &Call) -> bool {
    let is_it = |selection: &Selection| match selection {
        Selection::Numbers(numbers) => numbers.contains(&number),
        Selection::Method(part) => call.method().is_some_and(|method| method.contains(part)),
    };
    selections.is_empty() || selections.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_selected_by_number_and_method() {
        assert_eq!("7".parse(), Ok(Selection::Numbers(7..=7)));
        assert_eq!("3-9".parse(), Ok(Selection::Numbers(3..=9)));
        assert_eq!("/a.B/C".parse(), Ok(Selection::Method("a.B/C".to_owned())));
        assert_eq!("9-9".parse(), Ok(Selection::Numbers(9..=9)));
        assert!("3-x".parse::<Selection>().is_err());
        assert!("9-3".parse::<Selection>().unwrap_err().contains("use 3-9"));
        assert!("".parse::<Selection>().is_err());
    }
}
