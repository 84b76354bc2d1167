//! Messages to stderr during a run.

use std::sync::{Arc, Mutex, PoisonError};

use crate::terminal;

/// Messages to stderr during a run. While a view has the screen, they are buffered for it and printed when it ends.
#[derive(Clone)]
pub(super) struct Notices(Arc<Mutex<Held>>);

struct Held {
    is_held: bool,
    all: Vec<String>,
}

impl Notices {
    pub(super) fn new(is_held: bool) -> Self {
        Self(Arc::new(Mutex::new(Held { is_held, all: Vec::new() })))
    }

    pub(super) fn say(&self, text: &str) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_held {
            held.all.push(text.to_owned());
        } else {
            terminal::note(text);
        }
    }

    /// Returns the messages for the view.
    pub(super) fn held(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Ends buffering and prints buffered messages.
    pub(super) fn release(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.is_held = false;
        held.all.drain(..).for_each(|text| terminal::note(&text));
    }
}
