//! Messages to stderr during a run.

use std::sync::{Arc, Mutex, PoisonError};

use crate::terminal;

/// Messages to stderr during a run. While a view has the screen, they are buffered for it and printed when it ends.
#[derive(Clone)]
pub(super) struct Notices(Arc<Mutex<NoticeBuffer>>);

struct NoticeBuffer {
    is_buffering: bool,
    messages: Vec<String>,
}

impl Notices {
    pub(super) fn new(is_buffering: bool) -> Self {
        Self(Arc::new(Mutex::new(NoticeBuffer { is_buffering, messages: Vec::new() })))
    }

    pub(super) fn say(&self, text: &str) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.is_buffering {
            buffer.messages.push(text.to_owned());
        } else {
            terminal::note(text);
        }
    }

    /// Returns the messages for the view.
    pub(super) fn buffered(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).messages.clone()
    }

    /// Ends buffering and prints buffered messages.
    pub(super) fn release(&self) {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.is_buffering = false;
        buffer.messages.drain(..).for_each(|text| terminal::note(&text));
    }
}
