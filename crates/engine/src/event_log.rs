//! The latest events of a channel or an endpoint, as channelz shows them: [`EventLog`].

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use thalweg_balance::ConnectivityState;

use crate::snapshot::{EventsSnapshot, LoggedEvent};

/// The latest events of a channel or an endpoint.
#[derive(Debug)]
pub(crate) struct EventLog {
    created_at: SystemTime,
    events: Mutex<Events>,
}

#[derive(Debug)]
struct Events {
    latest: VecDeque<LoggedEvent>,
    logged: u64,
    /// The last state that was noted.
    state: ConnectivityState,
}

/// Maximum number of kept events: with [`DESCRIPTION_LEN_MAX`], 8 KiB of text. grpc-go keeps 30.
const EVENTS_MAX: usize = 32;
/// Maximum length of a description in bytes; the rest is cut off.
const DESCRIPTION_LEN_MAX: usize = 256;

impl EventLog {
    pub(crate) fn new() -> Self {
        let (latest, state) = (VecDeque::new(), ConnectivityState::Idle);
        Self { created_at: SystemTime::now(), events: Mutex::new(Events { latest, logged: 0, state }) }
    }

    pub(crate) fn note(&self, description: impl Into<String>) {
        self.events().push(false, description.into(), None);
    }

    pub(crate) fn note_failure(&self, description: impl Into<String>) {
        self.events().push(true, description.into(), None);
    }

    /// Notes what happened to an endpoint of the channel.
    pub(crate) fn note_endpoint(&self, description: &str, id: u64, name: String) {
        self.events().push(false, format!("{description} {name}"), Some((id, name)));
    }

    /// Notes the state. Returns the former one if it has changed.
    pub(crate) fn note_state(&self, state: ConnectivityState) -> Option<ConnectivityState> {
        let mut events = self.events();
        let former = std::mem::replace(&mut events.state, state);
        (former != state).then(|| {
            events.push(false, format!("state changed from {former} to {state}"), None);
            former
        })
    }

    pub(crate) fn snapshot(&self) -> EventsSnapshot {
        let events = self.events();
        let latest = events.latest.iter().cloned().collect();
        EventsSnapshot { created_at: self.created_at, logged: events.logged, latest }
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    fn push(&mut self, is_failure: bool, mut description: String, endpoint: Option<(u64, String)>) {
        if description.len() > DESCRIPTION_LEN_MAX {
            let boundary = (0..=DESCRIPTION_LEN_MAX).rev().find(|&at| description.is_char_boundary(at));
            description.truncate(boundary.unwrap_or(0));
        }
        if self.latest.len() == EVENTS_MAX {
            self.latest.pop_front();
        }
        self.logged += 1;
        self.latest.push_back(LoggedEvent { at: SystemTime::now(), is_failure, description, endpoint });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_events_are_kept_and_all_are_counted() {
        let log = EventLog::new();
        for number in 0..EVENTS_MAX + 3 {
            log.note_failure(format!("{number} {}", "ü".repeat(DESCRIPTION_LEN_MAX)));
        }
        let EventsSnapshot { logged, latest, .. } = log.snapshot();
        assert_eq!((logged, latest.len()), (35, 32));
        assert!(latest[0].description.starts_with("3 ü") && latest[0].is_failure);
        // A letter of two bytes starts at byte 255.
        assert!(latest[31].description.starts_with("34 ü") && latest[31].description.len() == 255);
    }

    #[test]
    fn only_changes_of_state_are_noted() {
        let log = EventLog::new();
        let (idle, ready) = (ConnectivityState::Idle, ConnectivityState::Ready);
        assert_eq!([idle, ready, ready].map(|state| log.note_state(state)), [None, Some(idle), None]);
        let descriptions: Vec<_> = log.snapshot().latest.into_iter().map(|event| event.description).collect();
        assert_eq!(descriptions, ["state changed from IDLE to READY"]);
    }
}
