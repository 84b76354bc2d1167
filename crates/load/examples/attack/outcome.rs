//! Outcome of an attack.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Time to wait for the server's last frames.
pub(crate) const LAST_WORDS: Duration = Duration::from_millis(200);

/// Outcome of an attack.
pub(crate) struct Outcome {
    pub(crate) began: Instant,
    pub(crate) connections: usize,
    pub(crate) sent_bytes: u64,
    /// HTTP/2 frames, or TLS records.
    pub(crate) sent_frames: u64,
    /// Ends of connections, or of the calls on them.
    pub(crate) ends: Vec<CloseInfo>,
    pub(crate) lasted: Duration,
}

/// End of a connection or call by the server.
#[derive(Clone)]
pub(crate) struct CloseInfo {
    pub(crate) at: Instant,
    pub(crate) how: String,
}

/// End of a connection as seen by its reading thread.
#[derive(Default)]
pub(crate) struct ConnectionEnd(Mutex<Option<CloseInfo>>);

impl ConnectionEnd {
    /// Notes an end. Only the first one counts, as GOAWAY precedes the end of the stream.
    pub(crate) fn note(&self, how: impl FnOnce() -> String) {
        let mut end = self.0.lock().expect("the lock is not poisoned");
        end.get_or_insert_with(|| CloseInfo { at: Instant::now(), how: how() });
    }

    pub(crate) fn end(&self) -> Option<CloseInfo> {
        self.0.lock().expect("the lock is not poisoned").clone()
    }

    /// Returns the end after waiting for the server's last frames.
    pub(crate) fn end_in_time(&self) -> Option<CloseInfo> {
        thread::sleep(LAST_WORDS);
        self.end()
    }
}

impl Outcome {
    pub(crate) fn new() -> Self {
        let (began, lasted) = (Instant::now(), Duration::ZERO);
        Self { began, connections: 0, sent_bytes: 0, sent_frames: 0, ends: Vec::new(), lasted }
    }

    pub(crate) fn json(&self, class: &str) -> Value {
        let first = self.ends.iter().min_by_key(|end| end.at);
        json!({
            "class": class,
            "connections": self.connections,
            "sent_bytes": self.sent_bytes,
            "sent_frames": self.sent_frames,
            "ended": self.ends.len(),
            "cut_after_ms": first.map(|end| end.at.saturating_duration_since(self.began).as_millis()),
            "cut_by": first.map(|end| &end.how),
            "lasted_ms": self.lasted.as_millis(),
        })
    }
}
