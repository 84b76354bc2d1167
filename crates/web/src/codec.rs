//! Conversion of messages between wire bytes and the client's codec.

use bytes::Bytes;
use thalweg_engine::{Code, ServiceOptions, Status, compact};
use thalweg_protobuf::{MessageType, json, msgpack};

use crate::compression::SIZE_OPTION;

/// Encoding of the messages of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Protobuf wire format.
    Proto,
    Json,
    /// MessagePack, with the mapping of ProtoJSON.
    MessagePack,
}

/// Options for codecs other than Protobuf.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodecOptions {
    pub(crate) parse: json::ParseOptions,
    pub(crate) print: json::PrintOptions,
}

impl CodecOptions {
    /// Lowers the message size limits to those of a method.
    pub(crate) fn with_size_limits(&self, bounds: &ServiceOptions) -> CodecOptions {
        let CodecOptions { mut parse, mut print } = self.clone();
        parse.len_max = parse.len_max.min(bounds.max_decoding_message_size);
        print.len_max = print.len_max.min(bounds.max_encoding_message_size);
        CodecOptions { parse, print }
    }
}

/// The names of all codecs.
pub(crate) const CODECS: [&str; 3] = ["proto", "json", "msgpack"];

impl Codec {
    /// Returns the codec with this name, ignoring case.
    pub(crate) fn named(name: &str) -> Option<Codec> {
        let all = [Codec::Proto, Codec::Json, Codec::MessagePack];
        all.into_iter().find(|codec| codec.name().eq_ignore_ascii_case(name))
    }

    /// Returns the name used in content types.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Codec::Proto => "proto",
            Codec::Json => "json",
            Codec::MessagePack => "msgpack",
        }
    }

    /// Decodes a client's message to wire bytes.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with the position and the field for a malformed message, RESOURCE_EXHAUSTED for one that is too
    /// long.
    pub(crate) fn read(
        self,
        message_type: MessageType<'_>,
        message: Bytes,
        options: &json::ParseOptions,
    ) -> Result<Bytes, Status> {
        let mut wire = Vec::with_capacity(message.len());
        let refused = |problem: &dyn std::fmt::Display, is_too_long| {
            let why = format!("the request is not a valid {}: {problem}", message_type.full_name());
            if is_too_long {
                Status::new(Code::ResourceExhausted, format!("{why}: {SIZE_OPTION}"))
            } else {
                Status::new(Code::InvalidArgument, why)
            }
        };
        match self {
            Codec::Proto => return Ok(message),
            Codec::Json => json::parse(message_type, &message, options, &mut wire)
                .map_err(|error| refused(&error, error.is_too_long))?,
            Codec::MessagePack => msgpack::parse(message_type, &message, options, &mut wire)
                .map_err(|error| refused(&error, error.is_too_long))?,
        }
        Ok(compact(wire))
    }

    /// Encodes wire bytes for the client.
    ///
    /// # Errors
    /// INTERNAL for a message that can't be printed, RESOURCE_EXHAUSTED for one that is too long.
    pub(crate) fn write(
        self,
        message_type: MessageType<'_>,
        wire: Bytes,
        options: &json::PrintOptions,
    ) -> Result<Bytes, Status> {
        let mut message = Vec::with_capacity(wire.len() + wire.len() / 2 + 16);
        let printed = match self {
            Codec::Proto => return Ok(wire),
            Codec::Json => json::print(message_type, &wire, options, &mut message),
            Codec::MessagePack => msgpack::print(message_type, &wire, options, &mut message),
        };
        let within = |()| match message.len() {
            len if len > options.len_max => Err(json::PrintError::TooLong { max: options.len_max }),
            _ => Ok(()),
        };
        // While printing, closing brackets are not counted.
        printed.and_then(within).map_err(|error| {
            let code = match &error {
                json::PrintError::TooLong { .. } => Code::ResourceExhausted,
                _ => Code::Internal,
            };
            let (name, codec) = (message_type.full_name(), self.name());
            Status::new(code, format!("failed to write the response, {name}, as {codec}: {error}"))
        })?;
        Ok(compact(message))
    }
}
