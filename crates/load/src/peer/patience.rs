//! Time limits of a driver, and its announcements.

use std::time::Duration;

/// Time limits of a driver.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Limit for opening all connections.
    pub connect: Duration,
    /// Limit for one unary call, or for a stream's next message. It is enforced here and not sent as a deadline, so
    /// that the measured calls are as plain as possible.
    pub call: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), call: Duration::from_secs(10) }
    }
}

/// An event that an outside observer of a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The first of many connections has made a call and is idle. The server's memory now is the baseline without the
    /// other connections.
    First,
    /// All connections have made a call and are idle.
    Connected,
    /// The warm-up has ended and the measured time begins.
    Measuring,
    /// The measured time has ended. Calls in flight are still awaited.
    Measured,
}

impl Announcement {
    const ALL: [Self; 4] = [Self::First, Self::Connected, Self::Measuring, Self::Measured];

    /// Returns the announcement of a line.
    pub(super) fn of(line: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|announcement| announcement.name() == line)
    }

    /// Returns the line printed on a driver's stdout.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Connected => "connected",
            Self::Measuring => "measuring",
            Self::Measured => "measured",
        }
    }
}
