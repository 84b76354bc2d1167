//! Share of active connections.

use std::fmt;
use std::str::FromStr;

/// A percentage above 0 and up to 100: `1%`, `12.5%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

/// Error for a text that is not a share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid share of connections `{0}`; use a percentage above 0 and up to 100, such as 10%")]
pub struct NotAShare(String);

impl Share {
    /// All connections.
    pub const ALL: Self = Self(100.0);

    /// Creates a share from a percentage.
    pub(crate) const fn percent(percent: f64) -> Self {
        Self(percent)
    }

    /// Returns this share of `connections`, at least one.
    pub(crate) fn of(self, connections: u32) -> u32 {
        let active = (f64::from(connections) * self.0 / 100.0).ceil() as u32;
        active.clamp(1, connections.max(1))
    }
}

impl FromStr for Share {
    type Err = NotAShare;

    fn from_str(text: &str) -> Result<Self, NotAShare> {
        let percent = text.strip_suffix('%').unwrap_or(text).parse().ok();
        let percent = percent.filter(|&percent: &f64| percent > 0.0 && percent <= 100.0);
        percent.map(Self).ok_or_else(|| NotAShare(text.to_owned()))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_at_least_one_connection() {
        let check = |text: &str, of: [u32; 3]| {
            let share: Share = text.parse().unwrap();
            assert_eq!([1, 10, 10_000].map(|connections| share.of(connections)), of, "{text}");
        };
        check("1%", [1, 1, 100]);
        check("10%", [1, 1, 1000]);
        check("100%", [1, 10, 10_000]);
        check("12.5", [1, 2, 1250]);
        for text in ["0%", "101%", "", "all", "NaN"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
