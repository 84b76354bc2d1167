//! What a client's own errors say of the call that they are of: which it is, to where, and how far it was.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Sent, as far as its caller knows. The plain way notes nothing else.
    Answer,
    /// It has not left: its message can't be sent.
    Unsent,
    Connection,
    FreeStream,
    /// Requests of a stream are not all sent.
    Requests,
    /// Some of the response has come.
    Response,
}

impl Phase {
    const ALL: [Self; 6] =
        [Self::Answer, Self::Unsent, Self::Connection, Self::FreeStream, Self::Requests, Self::Response];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answer => "waiting for the response",
            Self::Unsent => "not sent",
            Self::Connection => "connecting",
            Self::FreeStream => "waiting for a free stream",
            Self::Requests => "sending its requests",
            Self::Response => "receiving the response",
        })
    }
}

/// How far a call is, and with which of its attempts. Written by those who wait before they are sent, and by those who
/// fail.
#[derive(Debug)]
pub(crate) struct CallProgress(AtomicU32);

/// The phase is in the lowest byte, above it the attempts that were in vain.
const ATTEMPT: u32 = 1 << 8;

impl CallProgress {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(Phase::Answer as u32))
    }

    pub(crate) fn note(&self, phase: Phase) {
        let attempts = self.0.load(Ordering::Relaxed) & !(ATTEMPT - 1);
        self.0.store(attempts | phase as u32, Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn note_attempt(&self) {
        self.0.fetch_add(ATTEMPT, Ordering::Relaxed);
    }

    pub(crate) fn phase(&self) -> Phase {
        let number = self.0.load(Ordering::Relaxed) % ATTEMPT;
        Phase::ALL.into_iter().find(|phase| *phase as u32 == number).unwrap_or(Phase::Answer)
    }

    /// Counted from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.0.load(Ordering::Relaxed) / ATTEMPT + 1
    }
}

/// What the reader of a stream keeps of its call.
#[derive(Debug)]
pub(crate) struct CallName {
    /// That of most methods is in the program.
    pub(crate) path: Cow<'static, str>,
    pub(crate) attempt: u32,
}

/// Which call it is, to where, and how far: `/a.B/C to localhost:50051 (127.0.0.1:50051), attempt 2, waiting for the
/// response`.
pub(crate) struct CallContext<'a> {
    pub(crate) path: &'a str,
    /// As the user has written it.
    pub(crate) target: &'a dyn fmt::Display,
    /// The address, if there is one.
    pub(crate) peer: Option<&'a str>,
    pub(crate) attempt: u32,
    /// Left out where the message says it.
    pub(crate) phase: Option<Phase>,
}

impl fmt::Display for CallContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target.to_string();
        write!(f, "{} to {target}", self.path)?;
        if let Some(peer) = self.peer.filter(|peer| *peer != target) {
            write!(f, " ({peer})")?;
        }
        if self.attempt > 1 {
            write!(f, ", attempt {}", self.attempt)?;
        }
        match self.phase {
            Some(phase) => write!(f, ", {phase}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_call() {
        let check = |peer, attempt, phase, expected: &str| {
            let target = &"localhost:1" as &dyn fmt::Display;
            let context = CallContext { path: "/a.B/C", target, peer, attempt, phase };
            assert_eq!(context.to_string(), expected);
        };
        check(None, 1, None, "/a.B/C to localhost:1");
        check(Some("localhost:1"), 1, Some(Phase::Connection), "/a.B/C to localhost:1, connecting");
        check(
            Some("[::1]:1"),
            2,
            Some(Phase::Answer),
            "/a.B/C to localhost:1 ([::1]:1), attempt 2, waiting for the response",
        );
    }

    #[test]
    fn phases_and_attempts() {
        let progress = CallProgress::new();
        for (attempt, phase) in (1..).zip(Phase::ALL) {
            progress.note(phase);
            assert_eq!((progress.attempt(), progress.phase()), (attempt, phase));
            progress.note_attempt();
        }
    }
}
