//! The header `lab-times`: timestamps of a call on the server.

use std::fmt;

use nix::time::{ClockId, clock_gettime};

pub const HEADER: &str = "lab-times";

/// Timestamps in ns; `None` if not observed.
#[derive(Default)]
pub struct Times {
    pub received: Option<i64>,
    pub decoded: Option<i64>,
    pub handled: Option<i64>,
    pub encoded: Option<i64>,
}

/// Reads the clock that all processes of a machine share.
pub fn now() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, decoded, handled, encoded } = self;
        let parts =
            [("received", received), ("decoded", decoded), ("handled", handled), ("encoded", encoded)];
        let mut gap = "";
        for (part, moment) in parts {
            if let Some(ns) = moment {
                write!(f, "{gap}{part}={ns}")?;
                gap = " ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_times_are_in_order() {
        let times = Times { handled: Some(3), decoded: Some(-2), ..Times::default() };
        assert_eq!(times.to_string(), "decoded=-2 handled=3");
        let times = Times { received: Some(1), encoded: Some(4), ..times };
        assert_eq!(times.to_string(), "received=1 decoded=-2 handled=3 encoded=4");
    }
}
