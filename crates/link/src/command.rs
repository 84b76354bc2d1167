//! Commands for a running link.

use std::str::FromStr;
use std::time::Duration;

use crate::options::{Cut, Jitter, duration};
use crate::rate::Rate;

/// A command for a running link. Written as one line, such as `stall 2s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `stall`, `stall 2s`: stops both directions, for this time or until `resume`. Connections stay open; new ones are
    /// accepted after the stall.
    Stall(Option<Duration>),
    /// `resume`: ends a stall, without loss.
    Resume,
    /// `cut`, `cut reset`, `cut silent`: cuts all open connections.
    Cut(Cut),
    /// `refuse`: refuses new connections, as if nothing listened. Open connections are not affected.
    Refuse,
    /// `accept`: accepts new connections again.
    Accept,
    /// `delay 10ms`: sets the one-way delay of bytes that arrive from now on.
    Delay(Duration),
    /// `jitter 1ms`, `jitter normal:1ms`, `jitter 0s`.
    Jitter(Jitter),
    /// `rate 1gbit`, `rate unlimited`.
    Rate(Option<Rate>),
    /// `reset`: restarts all statistics.
    Reset,
}

/// A line that is not a valid command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown command `{0}`; use stall [DURATION], resume, cut [reset|silent], refuse, accept, delay DURATION, jitter \
     DURATION, rate RATE|unlimited or reset"
)]
pub struct ParseCommandError(String);

impl FromStr for Command {
    type Err = ParseCommandError;

    fn from_str(line: &str) -> Result<Self, ParseCommandError> {
        let line = line.trim();
        let (word, argument) = match line.split_once(char::is_whitespace) {
            Some((word, argument)) => (word, Some(argument.trim())),
            None => (line, None),
        };
        let command = match (word, argument) {
            ("stall", None) => Some(Self::Stall(None)),
            ("stall", Some(time)) => duration(time).map(|time| Self::Stall(Some(time))),
            ("resume", None) => Some(Self::Resume),
            ("cut", None) => Some(Self::Cut(Cut::Reset)),
            ("cut", Some(how)) => how.parse().ok().map(Self::Cut),
            ("refuse", None) => Some(Self::Refuse),
            ("accept", None) => Some(Self::Accept),
            ("delay", Some(time)) => duration(time).map(Self::Delay),
            ("jitter", Some(jitter)) => jitter.parse().ok().map(Self::Jitter),
            ("rate", Some("unlimited")) => Some(Self::Rate(None)),
            ("rate", Some(rate)) => rate.parse().ok().map(|rate| Self::Rate(Some(rate))),
            ("reset", None) => Some(Self::Reset),
            _ => None,
        };
        command.ok_or_else(|| ParseCommandError(line.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed() {
        let check = |line: &str, expected: Option<Command>| assert_eq!(line.parse().ok(), expected, "{line}");
        let second = Duration::from_secs(1);
        check("stall", Some(Command::Stall(None)));
        check("  stall   2s ", Some(Command::Stall(Some(2 * second))));
        check("resume", Some(Command::Resume));
        check("cut", Some(Command::Cut(Cut::Reset)));
        check("cut silent", Some(Command::Cut(Cut::Silent)));
        check("refuse", Some(Command::Refuse));
        check("accept", Some(Command::Accept));
        check("delay 1s", Some(Command::Delay(second)));
        check("jitter normal:1s", Some(Command::Jitter(Jitter::Normal(second))));
        check("jitter 0s", Some(Command::Jitter(Jitter::None)));
        check("rate 1gbit", Some(Command::Rate("1gbit".parse().ok())));
        check("rate unlimited", Some(Command::Rate(None)));
        check("reset", Some(Command::Reset));
        for line in
            ["", "stall 2", "resume now", "cut loudly", "delay", "delay 9999years", "rate 1", "Stall", "quit"]
        {
            check(line, None);
        }
    }
}
