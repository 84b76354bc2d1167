//! User-provided messages, of a type known only at run time.

use std::cell::RefCell;

use thalweg_messages::OwnMessages;
use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{Encoder, Message, MessageType, Schema, msgpack};

use super::protocol::Format;

thread_local! {
    /// Reused, as in a program that encodes one message after another.
    static ENCODER: RefCell<Encoder> = RefCell::default();
}

/// Messages to echo. Each has been converted to ProtoJSON and back, so it has the same content in all formats.
#[derive(Clone, Debug)]
pub struct OwnEcho(pub(super) Vec<OwnMessage>);

/// Reason why the messages cannot be echoed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnEchoError {
    /// The descriptors lack the message's type.
    #[error("missing message {0} in its own descriptors")]
    NoType(String),
    /// There are no messages.
    #[error("no message to echo")]
    Empty,
    /// A message has no JSON form.
    #[error("message {number} cannot be echoed as JSON: {reason}")]
    NoJson {
        /// Number of the message, from 1.
        number: usize,
        /// Reason.
        reason: String,
    },
}

#[derive(Clone, Debug)]
pub(super) struct OwnMessage(Message);

impl OwnEcho {
    /// Converts each message to JSON and back.
    ///
    /// # Errors
    ///
    /// If there is no message, or one has no JSON form, such as an `Any` of an unknown type.
    pub fn new(own: &OwnMessages) -> Result<Self, OwnEchoError> {
        let no_type = || OwnEchoError::NoType(own.type_name.clone());
        let schema = Schema::from_descriptor_set(&own.set).map_err(|_| no_type())?;
        let of = schema.message(&own.type_name).ok_or_else(no_type)?;
        if own.wires.is_empty() {
            return Err(OwnEchoError::Empty);
        }
        let message = |(index, wire): (usize, &Vec<u8>)| {
            let number = index + 1;
            let by_json = by_json(of, wire);
            by_json.map(OwnMessage).map_err(|reason| OwnEchoError::NoJson { number, reason })
        };
        own.wires.iter().enumerate().map(message).collect::<Result<_, _>>().map(Self)
    }
}

/// Converts a message to JSON and back.
fn by_json(of: MessageType<'_>, wire: &[u8]) -> Result<Message, String> {
    let (mut text, mut again) = (Vec::new(), Vec::new());
    json::print(of, wire, &printed(), &mut text).map_err(|error| error.to_string())?;
    json::parse(of, &text, &parsed(), &mut again).map_err(|error| error.to_string())?;
    Message::decode(of, again).map_err(|error| error.to_string())
}

impl OwnMessage {
    /// Encodes the message after `prefix_len` zero bytes.
    pub(super) fn encode_after_prefix(&self, format: Format, prefix_len: usize) -> Vec<u8> {
        let of = self.0.message_type();
        ENCODER.with_borrow_mut(|encoder| {
            let wire = encoder.encode(self.0.as_ref());
            let mut bytes = Vec::with_capacity(prefix_len + wire.len());
            bytes.resize(prefix_len, 0);
            match format {
                Format::Protobuf => bytes.extend_from_slice(wire),
                Format::Json => json::print(of, wire, &printed(), &mut bytes).expect("printed before"),
                Format::Msgpack => {
                    msgpack::print(of, wire, &printed(), &mut bytes)
                        .expect("a message with JSON has MessagePack");
                }
            }
            bytes
        })
    }

    /// Decodes a message of the same type.
    pub(super) fn decode_like(&self, format: Format, bytes: &[u8]) -> Result<Self, String> {
        let of = self.0.message_type();
        let mut wire = Vec::with_capacity(bytes.len());
        match format {
            Format::Protobuf => wire.extend_from_slice(bytes),
            Format::Json => json::parse(of, bytes, &parsed(), &mut wire)
                .map_err(|error| format!("the response is not valid JSON: {error}"))?,
            Format::Msgpack => msgpack::parse(of, bytes, &parsed(), &mut wire)
                .map_err(|error| format!("the response is not valid MessagePack: {error}"))?,
        }
        let decoded = Message::decode(of, wire);
        decoded.map(Self).map_err(|error| format!("the response is not a valid message: {error}"))
    }

    /// Compares the number of fields.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.0.as_ref().fields().count() == other.0.as_ref().fields().count()
    }
}

impl PartialEq for OwnMessage {
    /// Compares encodings if the values differ, so that a `NaN` equals itself.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.as_ref().encode_to_vec() == other.0.as_ref().encode_to_vec()
    }
}

/// Allows missing proto2 required fields, as in the codec study.
fn printed() -> PrintOptions {
    PrintOptions::default().allow_partial(true)
}

fn parsed() -> ParseOptions {
    ParseOptions::default().allow_partial(true)
}
