//! A call and its messages in a file, written by `thalweg call --save` and read by `thalweg inspect`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use thalweg_protobuf::Schema;

use crate::transcript::{Messages, Metadata, Phase, Status, Transcript, framed};

/// Schema of the file.
pub const SCHEMA: &str = "thalweg.exchange/1";

/// A call with its messages.
#[derive(Debug, Serialize, Deserialize)]
pub struct Exchange {
    /// [`SCHEMA`].
    pub schema: String,
    /// Start of the call (RFC 3339).
    pub started: String,
    /// Address of the server.
    pub target: String,
    /// `package.Service/Method`.
    pub method: String,
    /// Full name of the request type.
    pub request_type: String,
    /// Full name of the response type.
    pub response_type: String,
    /// Metadata of the request.
    pub request_metadata: Metadata,
    /// Requests.
    pub requests: Vec<SavedMessage>,
    /// Metadata of the response.
    pub response_metadata: Metadata,
    /// Responses.
    pub responses: Vec<SavedMessage>,
    /// Trailers.
    pub trailers: Metadata,
    /// Status of the call.
    pub status: Status,
    /// Phases of the call. Times start when the command starts to connect.
    pub phases: Vec<Phase>,
    /// A `google.protobuf.FileDescriptorSet` with the types, in Base64.
    pub descriptor_set: String,
}

/// A message of an [`Exchange`].
#[derive(Debug, Serialize, Deserialize)]
pub struct SavedMessage {
    /// Time in ns since the command started to connect.
    pub at_ns: u64,
    /// The encoded message, in Base64.
    pub wire: String,
}

impl Exchange {
    /// Reads an exchange. Returns `None` if the bytes are not an exchange.
    ///
    /// # Errors
    ///
    /// Returns an error for another schema version or an invalid exchange.
    pub fn read(bytes: &[u8]) -> Option<Result<Self, String>> {
        /// The part that identifies an exchange.
        #[derive(Deserialize)]
        struct SchemaOnly {
            schema: String,
        }
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let header: SchemaOnly = serde_json::from_slice(bytes).ok()?;
        let version = header.schema.strip_prefix("thalweg.exchange/")?;
        if header.schema != SCHEMA {
            return Some(Err(format!("unsupported schema version {version}; expected {SCHEMA}")));
        }
        Some(serde_json::from_slice(bytes).map_err(|error| error.to_string()))
    }

    /// Returns the message types.
    ///
    /// # Errors
    ///
    /// Returns an error for invalid descriptors.
    pub fn types(&self) -> Result<Schema, String> {
        let set = BASE64_STANDARD.decode(&self.descriptor_set);
        let set = set.map_err(|error| format!("invalid Base64 in descriptors: {error}"))?;
        Schema::from_descriptor_set(&set).map_err(|error| error.to_string())
    }

    /// Returns the call with its messages. `name` is the file's name, and `types` come from [`types`](Self::types).
    ///
    /// # Errors
    ///
    /// Returns an error for a missing type or an invalid message.
    pub fn transcript<'s>(&self, name: &str, types: &'s Schema) -> Result<Transcript<'s>, String> {
        let messages = |way: &str, messages: &[SavedMessage], type_name: &str| {
            let message_type = types.message(type_name);
            let message_type =
                message_type.ok_or_else(|| format!("missing type {type_name} in its descriptors"))?;
            let wires = messages.iter().map(SavedMessage::bytes).collect::<Result<Vec<_>, _>>()?;
            let frames = framed(wires.iter().map(|wire| (0, wire.as_slice())))?;
            Ok::<_, String>(Messages::new(format!("{name}, {way}"), frames, Some(message_type)))
        };
        Ok(Transcript {
            schema: "thalweg.inspect-exchange/1",
            method: Some(self.method.clone()),
            target: self.target.clone(),
            started: self.started.clone(),
            request_metadata: Some(self.request_metadata.clone()),
            response_metadata: Some(self.response_metadata.clone()),
            trailers: Some(self.trailers.clone()),
            status: Some(self.status.clone()),
            phases: self.phases.clone(),
            captured: None,
            requests: messages("requests", &self.requests, &self.request_type)?,
            responses: messages("responses", &self.responses, &self.response_type)?,
        })
    }
}

impl SavedMessage {
    fn bytes(&self) -> Result<Vec<u8>, String> {
        BASE64_STANDARD.decode(&self.wire).map_err(|error| format!("invalid Base64 in a message: {error}"))
    }
}
