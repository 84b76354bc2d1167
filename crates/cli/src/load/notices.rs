//! What is said on stderr while a run goes on.

use std::sync::{Arc, Mutex, PoisonError};

use crate::terminal;

/// What is said on stderr while a run goes on: at once, or, where the screen is a view's, by it, and once more when the
/// screen has been given back.
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

    /// What a view is to show.
    pub(super) fn held(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// The screen is no view's any more.
    pub(super) fn release(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.is_held = false;
        held.all.drain(..).for_each(|text| terminal::note(&text));
    }
}
