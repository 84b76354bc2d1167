//! Testee of Protobuf's conformance suite: reads requests from standard input and writes a response for each to
//! standard output. Its only argument is a descriptor set with the suite's messages. Run it with `cargo xtask test
//! --only conformance`.

use std::error::Error;
use std::io::{self, Read, Write};

use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::wire::{self, Reader, Tag, WireError, WireType};
use thalweg_protobuf::{Decoder, Message, MessageType, Schema};
use thalweg_protobuf_text::text_format;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the only argument is a file with a descriptor set")?;
    let schema = Schema::from_descriptor_set(&std::fs::read(file)?)?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut len = [0; 4];
    // The suite closes the input at the end.
    while input.read_exact(&mut len).is_ok() {
        let mut request = vec![0; u32::from_le_bytes(len) as usize];
        input.read_exact(&mut request)?;
        let response = Request::read(&request)?.respond(&schema).to_bytes();
        output.write_all(&u32::try_from(response.len())?.to_le_bytes())?;
        output.write_all(&response)?;
        output.flush()?;
    }
    Ok(())
}

/// The fields of `conformance.ConformanceRequest` that are used.
#[derive(Default)]
struct Request<'a> {
    payload: Option<Payload<'a>>,
    output_format: u64,
    message_type: &'a str,
    category: u64,
    prints_unknown_fields: bool,
}

enum Payload<'a> {
    Protobuf(&'a [u8]),
    Json(&'a [u8]),
    Text(&'a [u8]),
    /// JSPB.
    Other,
}

/// Values of `WireFormat` and `TestCategory`.
const PROTOBUF: u64 = 1;
const JSON: u64 = 2;
const JSON_IGNORE_UNKNOWN: u64 = 3;
const TEXT: u64 = 4;

/// `conformance.ConformanceResponse`
enum Response {
    ParseError(String),
    SerializeError(String),
    Protobuf(Vec<u8>),
    Json(String),
    Text(String),
    Skipped(String),
}

impl<'a> Request<'a> {
    fn read(bytes: &'a [u8]) -> Result<Request<'a>, WireError> {
        let mut request = Request::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let tag = reader.tag()?;
            match (tag.number, tag.wire_type) {
                (1, WireType::Len) => request.payload = Some(Payload::Protobuf(reader.len_prefixed()?)),
                (2, WireType::Len) => request.payload = Some(Payload::Json(reader.len_prefixed()?)),
                (3, WireType::Varint) => request.output_format = reader.varint()?,
                (4, WireType::Len) => {
                    request.message_type = std::str::from_utf8(reader.len_prefixed()?).unwrap_or("");
                }
                (5, WireType::Varint) => request.category = reader.varint()?,
                (8, WireType::Len) => request.payload = Some(Payload::Text(reader.len_prefixed()?)),
                (9, WireType::Varint) => request.prints_unknown_fields = reader.varint()? != 0,
                (7, WireType::Len) => {
                    reader.len_prefixed()?;
                    request.payload = Some(Payload::Other);
                }
                _ => reader.skip(tag, 1)?,
            }
        }
        Ok(request)
    }

    fn respond(&self, schema: &Schema) -> Response {
        let Some(message_type) = schema.message(self.message_type) else {
            return Response::Skipped(format!("there is no type {}", self.message_type));
        };
        let wire = match self.payload {
            Some(Payload::Protobuf(wire)) => normal_form(message_type, wire),
            Some(Payload::Json(json)) => {
                let options = ParseOptions::default().ignore_unknown(self.category == JSON_IGNORE_UNKNOWN);
                let mut wire = Vec::new();
                json::parse(message_type, json, &options, &mut wire)
                    .map(|()| wire)
                    .map_err(|error| error.to_string())
            }
            Some(Payload::Text(text)) => {
                text_format::to_wire(message_type, text).map_err(|error| error.to_string())
            }
            _ => return Response::Skipped("only Protobuf, JSON and text are read".to_owned()),
        };
        let wire = match wire {
            Ok(wire) => wire,
            Err(problem) => return Response::ParseError(problem),
        };
        match self.output_format {
            PROTOBUF => Response::Protobuf(wire),
            JSON => self.to_json(message_type, &wire),
            TEXT => self.to_text(message_type, &wire),
            _ => Response::Skipped("only Protobuf, JSON and text are written".to_owned()),
        }
    }

    fn to_json(&self, message_type: MessageType<'_>, wire: &[u8]) -> Response {
        // Convert Protobuf payloads directly, since the suite is to test that conversion.
        let wire = match self.payload {
            Some(Payload::Protobuf(wire)) => wire,
            _ => wire,
        };
        match json::from_wire(message_type, wire) {
            Ok(json) => Response::Json(json),
            Err(error) => Response::SerializeError(error.to_string()),
        }
    }

    fn to_text(&self, message_type: MessageType<'_>, wire: &[u8]) -> Response {
        let mut message = match Message::decode(message_type, wire.to_vec()) {
            Ok(message) => message,
            Err(error) => return Response::ParseError(error.to_string()),
        };
        if !self.prints_unknown_fields {
            message.as_mut().clear_unknown_fields();
        }
        let options = PrintOptions::default().pretty(true);
        let mut text = String::new();
        match text_format::print(message_type, &message.as_ref().encode_to_vec(), &options, &mut text) {
            Ok(_) => Response::Text(text),
            Err(error) => Response::SerializeError(error.to_string()),
        }
    }
}

/// Decodes and encodes a message.
fn normal_form(message_type: MessageType<'_>, wire: &[u8]) -> Result<Vec<u8>, String> {
    let mut decoder = Decoder::default();
    let message = decoder.decode(message_type, wire).map_err(|error| error.to_string())?;
    Ok(message.encode_to_vec())
}

impl Response {
    fn to_bytes(&self) -> Vec<u8> {
        let (number, value) = match self {
            Response::ParseError(text) => (1, text.as_bytes()),
            Response::Protobuf(bytes) => (3, bytes.as_slice()),
            Response::Json(text) => (4, text.as_bytes()),
            Response::Skipped(text) => (5, text.as_bytes()),
            Response::SerializeError(text) => (6, text.as_bytes()),
            Response::Text(text) => (8, text.as_bytes()),
        };
        let mut bytes = Vec::new();
        wire::put_tag(&mut bytes, Tag::new(number, WireType::Len));
        wire::put_varint(&mut bytes, value.len() as u64);
        bytes.extend_from_slice(value);
        bytes
    }
}
