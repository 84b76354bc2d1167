//! A call with its messages, from a capture or a file.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thalweg_protobuf::MessageType;
use thalweg_protobuf_text::dissect::framing::Framing;

use crate::input::Input;
use crate::inspection::Inspection;
use crate::json;

/// Names and values. Values of `-bin` names are in Base64.
pub type Metadata = Vec<(String, String)>;

/// A call with its messages, from a file or a capture.
#[derive(Debug, Serialize)]
pub struct Transcript<'s> {
    pub(crate) schema: &'static str,
    /// `package.Service/Method`, if known.
    pub method: Option<String>,
    /// Address of the server.
    pub target: String,
    /// Start of the call (RFC 3339).
    pub started: String,
    /// Metadata of the request, if known.
    pub request_metadata: Option<Metadata>,
    /// Metadata of the response, if there is any.
    pub response_metadata: Option<Metadata>,
    /// Trailers, if there are any.
    pub trailers: Option<Metadata>,
    /// Status of the call, if there is one.
    pub status: Option<Status>,
    /// Phases of the call, in order.
    pub phases: Vec<Phase>,
    /// Further information from a capture.
    #[serde(flatten)]
    pub captured: Option<CapturedInfo>,
    #[serde(skip)]
    pub(crate) requests: Messages<'s>,
    #[serde(skip)]
    pub(crate) responses: Messages<'s>,
}

/// Status of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// gRPC status code.
    pub code: i32,
    /// Name of the code.
    pub name: String,
    /// Status message; empty if there is none.
    pub message: String,
    /// A `google.rpc.Status`, in Base64; empty if there is none.
    pub details: String,
}

/// End of a phase of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// `connect`, `head`, `last message`, …
    pub name: String,
    /// Time in ns since the start of the call.
    pub ended_ns: u64,
    /// Further information; may be empty.
    pub note: String,
}

/// Information that only captures have.
#[derive(Clone, Debug, Serialize)]
pub struct CapturedInfo {
    /// Number of the call in the capture.
    pub call: u64,
    /// Address of the client.
    pub client: String,
    /// Stream ID.
    pub stream: u32,
    /// Name of the status, or the reason why there is none.
    pub ended: String,
    /// Messages of the client.
    pub sent: MessageCounts,
    /// Messages of the server.
    pub received: MessageCounts,
    /// Missing data and other remarks.
    pub notes: Vec<String>,
}

/// Messages of one direction.
#[derive(Clone, Debug, Serialize)]
pub struct MessageCounts {
    /// Number of messages.
    pub messages: u64,
    /// Bytes of messages.
    pub bytes: u64,
    /// Bytes of an incomplete message.
    pub cut_off_bytes: u64,
    /// Times of the messages in ns since the start of the call.
    pub at_ns: Vec<u64>,
}

/// Messages of one direction with gRPC prefixes.
#[derive(Debug)]
pub(crate) struct Messages<'s> {
    input: Input,
    message_type: Option<MessageType<'s>>,
}

impl<'s> Messages<'s> {
    pub(crate) fn new(name: String, bytes: Vec<u8>, message_type: Option<MessageType<'s>>) -> Self {
        Self { input: Input { name, bytes }, message_type }
    }
}

impl Transcript<'_> {
    /// Decodes the messages: `requests`, then `responses`, if there are any.
    pub fn inspections(&self) -> Vec<(&'static str, Inspection<'_>)> {
        let parts = [("requests", &self.requests), ("responses", &self.responses)];
        let parts = parts.into_iter().filter(|(_, part)| !part.input.bytes.is_empty());
        parts
            .map(|(way, part)| (way, Inspection::of(&part.input, part.message_type, Some(Framing::Grpc))))
            .collect()
    }

    /// Returns the call and its `inspections` as a document of the schema `thalweg.inspect-exchange/1`, or
    /// `thalweg.inspect-call/1` for a captured call.
    ///
    /// # Panics
    ///
    /// Never: all keys are strings.
    pub fn json(&self, inspections: &[(&str, Inspection<'_>)]) -> Value {
        let mut document = serde_json::to_value(self).expect("keys are strings");
        for (way, inspection) in inspections {
            document[*way] = serde_json::to_value(json::document(inspection)).expect("keys are strings");
        }
        document
    }
}

/// Returns messages with gRPC prefixes.
pub(crate) fn framed<'m>(messages: impl Iterator<Item = (u8, &'m [u8])>) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for (flags, message) in messages {
        let length = u32::try_from(message.len()).map_err(|_| "a message is larger than 4 GiB".to_owned())?;
        bytes.push(flags);
        bytes.extend(length.to_be_bytes());
        bytes.extend_from_slice(message);
    }
    Ok(bytes)
}
