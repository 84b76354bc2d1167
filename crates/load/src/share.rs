//! Part of a distributed load.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of a load distributed over several machines: `0/4` is the first of four.
///
/// Part `index` makes each start whose number modulo the number of parts is `index`. So all parts together make the
/// starts of the whole load, each exactly once.
///
/// ```
/// use thalweg_load::Share;
///
/// let share: Share = "1/4".parse()?;
/// assert_eq!((0..10).filter(|number| share.has(*number)).collect::<Vec<u64>>(), [1, 5, 9]);
/// assert_eq!(share.of_calls(10), 3);
/// # Ok::<(), thalweg_load::ShareError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Share {
    index: u32,
    of: u32,
}

/// The form in results.
#[derive(Deserialize)]
struct Written {
    index: u32,
    of: u32,
}

/// An invalid part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid part `{text}`: {why}")]
pub struct ShareError {
    text: String,
    why: String,
}

impl Share {
    /// Creates part `index`, counted from 0, of `of` parts.
    ///
    /// # Errors
    ///
    /// If `index` is not below `of`.
    pub fn new(index: u32, of: u32) -> Result<Self, ShareError> {
        if index < of {
            return Ok(Self { index, of });
        }
        let why = match of {
            0 => "the number of parts must be at least 1".to_owned(),
            _ => format!("parts are numbered from 0 to {}", of - 1),
        };
        Err(ShareError { text: format!("{index}/{of}"), why })
    }

    /// Returns the index, from 0.
    pub fn index(self) -> u32 {
        self.index
    }

    /// Returns the number of parts.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Returns whether this part makes the start with this number.
    pub fn has(self, number: u64) -> bool {
        number % u64::from(self.of) == u64::from(self.index)
    }

    /// Returns the number in the whole load of this part's `n`-th call, both from 0.
    pub fn number(self, n: u64) -> u64 {
        n.wrapping_mul(u64::from(self.of)).wrapping_add(u64::from(self.index))
    }

    /// Returns which of this part's calls has this number in the whole load.
    pub(crate) fn own(self, number: u64) -> u64 {
        number / u64::from(self.of)
    }

    /// Returns how many of `calls` calls this part makes.
    pub fn of_calls(self, calls: u64) -> u64 {
        let (index, of) = (u64::from(self.index), u64::from(self.of));
        calls / of + u64::from(index < calls % of)
    }
}

impl FromStr for Share {
    type Err = ShareError;

    fn from_str(text: &str) -> Result<Self, ShareError> {
        let numbers =
            text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        let (index, of) = numbers.ok_or_else(|| ShareError {
            text: text.to_owned(),
            why: "use INDEX/COUNT, such as 0/4 for the first of four".to_owned(),
        })?;
        Self::new(index, of)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl TryFrom<Written> for Share {
    type Error = ShareError;

    fn try_from(written: Written) -> Result<Self, ShareError> {
        Self::new(written.index, written.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_belongs_to_one_share() {
        for of in 1..8 {
            let parts: Vec<Share> = (0..of).map(|index| Share::new(index, of).unwrap()).collect();
            for calls in [0, 1, 2, 7, 8, 100, 101] {
                assert_eq!(
                    parts.iter().map(|part| part.of_calls(calls)).sum::<u64>(),
                    calls,
                    "{calls} by {of}"
                );
                let mut numbers: Vec<u64> =
                    parts.iter().flat_map(|part| (0..part.of_calls(calls)).map(|n| part.number(n))).collect();
                let is_own = |part: &Share| (0..part.of_calls(calls)).all(|n| part.own(part.number(n)) == n);
                assert!(parts.iter().all(is_own));
                numbers.sort_unstable();
                assert_eq!(numbers, (0..calls).collect::<Vec<u64>>());
            }
            for number in 0..50 {
                let makers: Vec<&Share> = parts.iter().filter(|part| part.has(number)).collect();
                assert_eq!(makers.len(), 1, "{number} by {of}");
            }
        }
    }

    #[test]
    fn invalid_share_is_rejected() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Share>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("4/4", "invalid part `4/4`: parts are numbered from 0 to 3");
        check("0/0", "the number of parts must be at least 1");
        check("1", "use INDEX/COUNT");
        check("-1/2", "use INDEX/COUNT");
        check("a/b", "use INDEX/COUNT");
        assert_eq!("3/4".parse::<Share>().unwrap().to_string(), "3/4");
        assert!(serde_json::from_str::<Share>(r#"{"index": 2, "of": 2}"#).is_err());
        let share = Share::new(1, 2).unwrap();
        assert_eq!(serde_json::from_str::<Share>(&serde_json::to_string(&share).unwrap()).unwrap(), share);
    }
}
