//! An exchange in a file, for `thalweg inspect`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use thalweg::bytes::Bytes;
use thalweg_lab::size::ByteSize;
use thalweg_lab::wording::counted;

use super::timeline::Timeline;
use crate::failure::Failure;

/// What the file says it is.
pub(crate) const SCHEMA: &str = "thalweg.exchange/1";

/// A call and all that went to and fro.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// [`SCHEMA`].
    pub(crate) schema: String,
    /// When it began, as RFC 3339 has it.
    pub(crate) started: String,
    pub(crate) target: String,
    /// `package.Service/Method`.
    pub(crate) method: String,
    /// The full names of the types of requests and responses.
    pub(crate) request_type: String,
    pub(crate) response_type: String,
    /// Names and values, those of `-bin` in Base64.
    pub(crate) request_metadata: Vec<(String, String)>,
    pub(crate) requests: Vec<SavedMessage>,
    pub(crate) response_metadata: Vec<(String, String)>,
    pub(crate) responses: Vec<SavedMessage>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) status: SavedStatus,
    /// What ended when.
    pub(crate) phases: Vec<SavedPhase>,
    /// A `google.protobuf.FileDescriptorSet` that has the types, in Base64.
    pub(crate) descriptor_set: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedMessage {
    /// Since the command began to connect.
    pub(crate) at_ns: u64,
    /// The message's bytes, in Base64.
    pub(crate) wire: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedStatus {
    pub(crate) code: i32,
    pub(crate) name: String,
    pub(crate) message: String,
    /// A `google.rpc.Status`, in Base64; empty if there is none.
    pub(crate) details: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedPhase {
    pub(crate) name: String,
    /// Since the command began to connect.
    pub(crate) ended_ns: u64,
    pub(crate) note: String,
}

/// Messages that went one way.
#[derive(Clone, Debug)]
pub(super) struct Sent(Arc<Mutex<Messages>>);

#[derive(Debug)]
struct Messages {
    count: u64,
    bytes: u64,
    /// Those that came so far, if they are to be kept.
    kept: Option<Vec<(Duration, Bytes)>>,
}

impl Sent {
    /// Counts them, and keeps them if they are to be saved.
    pub(super) fn new(is_kept: bool) -> Self {
        Self(Arc::new(Mutex::new(Messages { count: 0, bytes: 0, kept: is_kept.then(Vec::new) })))
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

impl SavedPhase {
    pub(super) fn all(timeline: &Timeline) -> Vec<Self> {
        let phase = |step: super::timeline::Step| Self {
            name: step.name.to_owned(),
            ended_ns: step.at.as_nanos() as u64,
            note: step.note,
        };
        timeline.steps().into_iter().map(phase).collect()
    }
}

impl Exchange {
    pub(super) fn now() -> String {
        humantime::format_rfc3339_millis(SystemTime::now()).to_string()
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(self).expect("an exchange is strings and numbers");
        std::fs::write(path, json + "\n")
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    }
}
