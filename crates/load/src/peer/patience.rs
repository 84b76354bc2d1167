//! What is waited for: by the driver, and by whoever watches a run from outside.

use std::time::Duration;

/// What the driver is patient with.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For connecting, all connections together.
    pub connect: Duration,
    /// For one unary call, or for a stream's next message. It is enforced here and not sent as a deadline, so that
    /// the calls that are measured are as plain as calls can be.
    pub call: Duration,
    /// For calls that are under way when the run is interrupted.
    pub interrupted: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            call: Duration::from_secs(10),
            interrupted: Duration::from_secs(1),
        }
    }
}

/// What whoever watches a run from outside waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// Of a client that opens many connections: the first has made a call, and is idle. What a server holds now is not
    /// the connections'.
    First,
    /// All connections have made a call, and are idle.
    Connected,
    /// The warm-up is over: the measured time begins.
    Measuring,
    /// The measured time has ended. What is under way is still waited for.
    Measured,
}

impl Announcement {
    const ALL: [Self; 4] = [Self::First, Self::Connected, Self::Measuring, Self::Measured];

    /// Returns the announcement of this line.
    pub(super) fn of(line: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|announcement| announcement.name() == line)
    }

    /// The line that says so on a driver's stdout.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Connected => "connected",
            Self::Measuring => "measuring",
            Self::Measured => "measured",
        }
    }
}
