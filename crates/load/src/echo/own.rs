//! One's own messages, of a type that is known at run time only: nobody generated code for it.

use std::cell::RefCell;

use thalweg_messages::OwnMessages;
use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{Encoder, Message, MessageType, Schema, msgpack};

use super::protocol::Format;

thread_local! {
    /// Its memory is used again, as a program would that encodes one message after the other.
    static ENCODER: RefCell<Encoder> = RefCell::default();
}

/// Messages to be echoed, each as ProtoJSON has it: in all formats there is the same in them.
#[derive(Clone, Debug)]
pub struct OwnEcho(pub(super) Vec<OwnMessage>);

/// Why own messages cannot be echoed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoOwnEcho {
    /// The type is not what the messages were read with.
    #[error("message {0} is missing from its own descriptors")]
    NoType(String),
    /// There are none.
    #[error("there is no message to be echoed")]
    Empty,
    /// One of them has no JSON.
    #[error("message {number} cannot be echoed as JSON: {reason}")]
    NoJson {
        /// Which, from 1.
        number: usize,
        /// Why.
        reason: String,
    },
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct OwnMessage(Message);

impl OwnEcho {
    /// # Errors
    /// When there is no message, or one has no JSON: an `Any` of an unknown type, say.
    pub fn new(own: &OwnMessages) -> Result<Self, NoOwnEcho> {
        let no_type = || NoOwnEcho::NoType(own.type_name.clone());
        let schema = Schema::from_descriptor_set(&own.set).map_err(|_| no_type())?;
        let of = schema.message(&own.type_name).ok_or_else(no_type)?;
        if own.wires.is_empty() {
            return Err(NoOwnEcho::Empty);
        }
        let message = |(index, wire): (usize, &Vec<u8>)| {
            let number = index + 1;
            let by_json = by_json(of, wire);
            by_json.map(OwnMessage).map_err(|reason| NoOwnEcho::NoJson { number, reason })
        };
        own.wires.iter().enumerate().map(message).collect::<Result<_, _>>().map(Self)
    }
}

/// The message that its JSON is.
fn by_json(of: MessageType<'_>, wire: &[u8]) -> Result<Message, String> {
    let (mut text, mut again) = (Vec::new(), Vec::new());
    json::print(of, wire, &printed(), &mut text).map_err(|error| error.to_string())?;
    json::parse(of, &text, &parsed(), &mut again).map_err(|error| error.to_string())?;
    Message::decode(of, again).map_err(|error| error.to_string())
}

impl OwnMessage {
    /// Its bytes behind so many others, which are zero.
    pub(super) fn encode_behind(&self, format: Format, prefix_len: usize) -> Vec<u8> {
        let of = self.0.message_type();
        ENCODER.with_borrow_mut(|encoder| {
            let wire = encoder.encode(self.0.as_ref());
            let mut bytes = Vec::with_capacity(prefix_len + wire.len());
            bytes.resize(prefix_len, 0);
            match format {
                Format::Protobuf => bytes.extend_from_slice(wire),
                Format::Json => json::print(of, wire, &printed(), &mut bytes).expect("it was printed before"),
                Format::Msgpack => {
                    msgpack::print(of, wire, &printed(), &mut bytes).expect("what has JSON has MessagePack");
                }
            }
            bytes
        })
    }

    /// What these bytes are, which are to be of the same type.
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

    /// As many fields are set.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.0.as_ref().fields().count() == other.0.as_ref().fields().count()
    }
}

impl PartialEq for OwnMessage {
    /// By their bytes: a `NaN` in them is what it is.
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.as_ref().encode_to_vec() == other.0.as_ref().encode_to_vec()
    }
}

/// What proto2 requires may be missing, as in the codec study.
fn printed() -> PrintOptions {
    PrintOptions { allow_partial: true, ..PrintOptions::default() }
}

fn parsed() -> ParseOptions {
    ParseOptions { allow_partial: true, ..ParseOptions::default() }
}
