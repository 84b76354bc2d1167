//! A call and all that went to and fro, in a file: `thalweg call --save` writes it, `thalweg inspect` reads it.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use thalweg_dynamic::texts::BYTE_ORDER_MARK;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::terminal::Syntax;

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

impl Exchange {
    /// The exchange in these bytes, if they are one; an error for one that cannot be read.
    pub(crate) fn read(bytes: &[u8]) -> Option<Result<Self, String>> {
        /// Enough to know it by.
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK.as_bytes()).unwrap_or(bytes);
        let head: Head = serde_json::from_slice(bytes).ok()?;
        let version = head.schema.strip_prefix("thalweg.exchange/")?;
        if head.schema != SCHEMA {
            return Some(Err(format!("unsupported schema version {version}; expected {SCHEMA}")));
        }
        Some(serde_json::from_slice(bytes).map_err(|error| error.to_string()))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(self).expect("an exchange is strings and numbers");
        OutputFile::beside(path)?.write(Syntax::Json, &(json + "\n"))
    }
}

impl SavedMessage {
    /// The message's bytes.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        BASE64_STANDARD.decode(&self.wire).map_err(|error| format!("invalid Base64 in a message: {error}"))
    }
}
