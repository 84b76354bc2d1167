//! Context of a client's own errors: the call, its target and its phase.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Phase of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Sent, as far as the caller knows. The fast path records no other phase.
    MessageResponse,
    /// Not sent, because the message cannot be sent.
    Unsent,
    Connection,
    FreeStream,
    /// Some requests of a stream are still unsent.
    Requests,
    /// Part of the response has arrived.
    Response,
}

impl Phase {
    const ALL: [Self; 6] = [
        Self::MessageResponse,
        Self::Unsent,
        Self::Connection,
        Self::FreeStream,
        Self::Requests,
        Self::Response,
    ];
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MessageResponse => "waiting for the response",
            Self::Unsent => "not sent",
            Self::Connection => "connecting",
            Self::FreeStream => "waiting for a free stream",
            Self::Requests => "sending its requests",
            Self::Response => "receiving the response",
        })
    }
}

/// Phase and attempt number of a call, recorded by calls that wait before they are sent and by calls that fail.
#[derive(Debug)]
pub(crate) struct CallProgress(AtomicU32);

/// The lowest byte holds the phase, the bits above it the number of failed attempts.
const ATTEMPT: u32 = 1 << 8;

impl CallProgress {
    #[inline]
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(Phase::MessageResponse as u32))
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
        Phase::ALL.into_iter().find(|phase| *phase as u32 == number).unwrap_or(Phase::MessageResponse)
    }

    /// Returns the attempt number, counted from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.0.load(Ordering::Relaxed) / ATTEMPT + 1
    }
}

/// The call's name, as kept by the reader of a stream.
#[derive(Debug)]
pub(crate) struct CallName {
    /// Borrowed for most methods, whose paths are constants of the program.
    pub(crate) path: Cow<'static, str>,
    pub(crate) attempt: u32,
}

/// Displays the call, its target and its phase: `/a.B/C to localhost:50051 (127.0.0.1:50051), attempt 2, waiting for
/// the response`.
pub(crate) struct CallContext<'a> {
    pub(crate) path: &'a str,
    /// The target as written by the user.
    pub(crate) target: &'a dyn fmt::Display,
    /// The peer's address, if known.
    pub(crate) peer: Option<&'a str>,
    pub(crate) attempt: u32,
    /// `None` if the message already states it.
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
    fn context_names_call_peer_and_attempt() {
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
            Some(Phase::MessageResponse),
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
