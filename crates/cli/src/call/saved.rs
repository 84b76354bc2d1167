//! What is kept of a call, to be saved.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use thalweg::bytes::Bytes;
use thalweg_inspect::exchange::SavedMessage;
use thalweg_inspect::transcript::Phase;
use thalweg_measure::size::ByteSize;
use thalweg_measure::wording::counted;

use super::timeline::Timeline;

/// Messages that went one way.
#[derive(Clone, Debug)]
pub(super) struct Messages(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    count: u64,
    bytes: u64,
    /// Those that came so far, if they are to be kept.
    kept: Option<Vec<(Duration, Bytes)>>,
}

impl Messages {
    /// Counts them, and keeps them if they are to be saved.
    pub(super) fn new(is_kept: bool) -> Self {
        Self(Arc::new(Mutex::new(Counted { count: 0, bytes: 0, kept: is_kept.then(Vec::new) })))
    }

    pub(super) fn push(&self, timeline: &Timeline, wire: &Bytes) {
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        messages.count += 1;
        messages.bytes += wire.len() as u64;
        if let Some(kept) = &mut messages.kept {
            kept.push((timeline.now(), wire.clone()));
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// How many, and how large: `1 message, 24 B`.
    pub(super) fn described(&self) -> String {
        let messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{}, {}", counted(messages.count, "message"), ByteSize(messages.bytes))
    }

    pub(super) fn saved(&self) -> Vec<SavedMessage> {
        let messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let saved = |(at, wire): &(Duration, Bytes)| SavedMessage {
            at_ns: at.as_nanos() as u64,
            wire: BASE64_STANDARD.encode(wire),
        };
        messages.kept.iter().flatten().map(saved).collect()
    }
}

/// What ended when.
pub(super) fn phases(timeline: &Timeline) -> Vec<Phase> {
    let phase = |step: super::timeline::Step| Phase {
        name: step.name.to_owned(),
        ended_ns: step.at.as_nanos() as u64,
        note: step.note,
    };
    timeline.steps().into_iter().map(phase).collect()
}

/// The time, as RFC 3339 has it.
pub(super) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
