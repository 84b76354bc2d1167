//! Messages of a call, collected for `--save`.

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

/// Messages of one direction.
#[derive(Clone, Debug)]
pub(super) struct Messages(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    count: u64,
    bytes: u64,
    /// Messages with their arrival times, if they are to be saved.
    kept: Option<Vec<(Duration, Bytes)>>,
}

impl Messages {
    /// Creates an empty collection. Keeps messages only if `is_kept`, else counts them.
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

    /// Returns count and size: `1 message, 24 B`.
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

pub(super) fn phases(timeline: &Timeline) -> Vec<Phase> {
    let phase = |step: super::timeline::Step| Phase {
        name: step.name.to_owned(),
        ended_ns: step.at.as_nanos() as u64,
        note: step.note,
    };
    timeline.steps().into_iter().map(phase).collect()
}

/// Returns the current time in RFC 3339 format.
pub(super) fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
