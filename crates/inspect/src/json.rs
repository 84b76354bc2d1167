//! JSON output in the schema `thalweg.inspect/1`, described in docs/inspect.md.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use thalweg_protobuf::MessageType;
use thalweg_protobuf_text::dissect::framing::Prefix;
use thalweg_protobuf_text::dissect::known::{self, Meaning, Scalar};
use thalweg_protobuf_text::dissect::readings::Reading;
use thalweg_protobuf_text::dissect::{Message, Problem, Record, Span, Tag, Value, Varint, wire_type_name};

use crate::compressed::{Content, DecodedFrame};
use crate::inspection::Inspection;
use crate::sizes::Sizes;

/// Larger integers lose precision in JavaScript and jq, and are written as strings.
const EXACT_MAX: i128 = 1 << 53;

#[derive(Serialize)]
pub(crate) struct Document<'a> {
    schema: &'static str,
    input: &'a str,
    bytes: usize,
    framing: Framing<'a>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    message_type: Option<&'a str>,
    messages: Vec<Json>,
    problems: Vec<String>,
    sizes: Json,
}

#[derive(Serialize)]
struct Framing<'a> {
    is: &'static str,
    /// `None` if the framing was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'a str>,
    or: Vec<&'static str>,
}

pub(crate) fn write(output: &mut dyn Write, inspection: &Inspection) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *output, &document(inspection))?;
    writeln!(output)
}

pub(crate) fn document<'a>(inspection: &'a Inspection<'_>) -> Document<'a> {
    let input = &inspection.input.bytes;
    let detection = inspection.detection.as_ref();
    Document {
        schema: "thalweg.inspect/1",
        input: &inspection.input.name,
        bytes: input.len(),
        framing: Framing {
            is: inspection.framing.name(),
            because: detection.map(|detection| detection.reason.as_str()),
            or: detection.map(|d| d.others.iter().map(|other| other.name()).collect()).unwrap_or_default(),
        },
        message_type: inspection.message_type.map(MessageType::full_name),
        messages: inspection.frames.iter().map(|decoded| frame(input, decoded)).collect(),
        problems: inspection.problems(),
        sizes: sizes(inspection),
    }
}

fn frame(input: &[u8], decoded: &DecodedFrame) -> Json {
    let frame = &decoded.frame;
    let mut json = position_of(frame.payload);
    match frame.prefix {
        Prefix::None => {}
        Prefix::Grpc { flags, length } => {
            let mut prefix = position_of(frame.prefix_span);
            prefix.extend([("flags".to_owned(), flags.into()), ("value".to_owned(), length.into())]);
            json.insert("prefix".to_owned(), prefix.into());
        }
        Prefix::Delimited(length) => drop(json.insert("prefix".to_owned(), varint(&length).into())),
    }
    match &decoded.content {
        Content::Message(message) => json.extend(fields(input, message)),
        Content::Compressed { encoding, bytes, message } => {
            json.insert("compressed_by".to_owned(), (*encoding).into());
            json.insert("decompressed_bytes".to_owned(), bytes.len().into());
            json.extend(fields(bytes, message));
        }
        Content::Text { what, text } => {
            json.insert("what".to_owned(), (*what).into());
            json.insert("text".to_owned(), text.as_str().into());
        }
        Content::NotDecompressed(why) => drop(json.insert("closed".to_owned(), why.as_str().into())),
    }
    json.into()
}

/// Returns the fields and problems of a message.
fn fields(input: &[u8], message: &Message) -> Map<String, Json> {
    let remarks = message.remarks();
    let records = message.records.iter().zip(remarks);
    let fields: Vec<Json> = records
        .map(|(one, remarks)| {
            let mut json = record(input, one);
            if !remarks.is_empty() {
                let remarks: Vec<String> = remarks.iter().map(ToString::to_string).collect();
                json.insert("remarks".to_owned(), remarks.into());
            }
            json.into()
        })
        .collect();
    let mut json = Map::new();
    if let Some(known) = message.message_type {
        json.insert("type".to_owned(), known.full_name().into());
        let absent: Vec<String> = message.absent().into_iter().map(known::name).collect();
        json.insert("absent".to_owned(), absent.into());
    }
    json.insert("fields".to_owned(), fields.into());
    if let Some(wrong) = &message.problem {
        json.insert("problem".to_owned(), problem(wrong));
        let mut rest = position_of(message.rest());
        rest.insert("hex".to_owned(), hex(message.rest().of(input)).into());
        json.insert("rest".to_owned(), rest.into());
    }
    json
}

fn record(input: &[u8], record: &Record) -> Map<String, Json> {
    let mut json = Map::new();
    json.insert("number".to_owned(), record.tag.number().into());
    if let Some(field) = record.field {
        json.insert("name".to_owned(), known::name(field).into());
        json.insert("declared".to_owned(), known::declaration(field).into());
    }
    json.insert("tag".to_owned(), tag(&record.tag));
    let span = match &record.value {
        Value::Varint(value) => value.span,
        Value::I64 { span, .. } | Value::I32 { span, .. } => *span,
        Value::Len { length, payload, .. } => {
            json.insert("length".to_owned(), varint(length).into());
            *payload
        }
        Value::Group { message, end } => {
            json.extend(end.map(|end| ("end".to_owned(), tag(&end))));
            message.span
        }
    };
    let mut payload = position_of(span);
    if record.likely_message(input).is_none() {
        payload.insert("hex".to_owned(), hex(span.of(input)).into());
    }
    json.insert("payload".to_owned(), payload.into());
    match record.meaning(input) {
        Some(Meaning::Scalar(value)) => drop(json.insert("value".to_owned(), scalar(&value))),
        Some(Meaning::Packed(values)) => {
            let values: Vec<Json> = values.iter().map(|(_, value)| scalar(value)).collect();
            json.insert("value".to_owned(), values.into());
        }
        Some(Meaning::Message(_)) => {}
        None => {
            let readings: Vec<Json> = record.value.readings(input).iter().map(reading).collect();
            json.insert("readings".to_owned(), readings.into());
        }
    }
    if let Some(message) = record.value.message() {
        json.insert("message".to_owned(), fields(input, message).into());
    }
    json.extend(record.problem.as_ref().map(|wrong| ("problem".to_owned(), problem(wrong))));
    json
}

fn tag(tag: &Tag) -> Json {
    let mut json = varint(tag);
    json.insert("wire_type".to_owned(), tag.wire_type().map(wire_type_name).into());
    json.into()
}

fn varint(varint: &Varint) -> Map<String, Json> {
    let mut json = position_of(varint.span);
    json.insert("value".to_owned(), integer(varint.value.into()));
    if varint.excess_bytes() > 0 {
        json.insert("excess_bytes".to_owned(), varint.excess_bytes().into());
    }
    json
}

fn position_of(span: Span) -> Map<String, Json> {
    Map::from_iter([("offset".to_owned(), span.start.into()), ("bytes".to_owned(), span.len().into())])
}

fn problem(problem: &Problem) -> Json {
    let mut json = json!({ "offset": problem.offset, "what": problem.to_string() });
    json["tag"] = problem.tag.as_ref().map(tag).into();
    json["length"] = problem.length.as_ref().map(varint).into();
    json
}

fn scalar(scalar: &Scalar) -> Json {
    match scalar {
        Scalar::Int(number) | Scalar::Zigzag(number, _) => integer((*number).into()),
        Scalar::Uint(number) => integer((*number).into()),
        Scalar::Bool(truth) => (*truth).into(),
        Scalar::Float(number) => float((*number).into(), number),
        Scalar::Double(number) => float(*number, number),
        Scalar::String(text) => (*text).into(),
        Scalar::Bytes(bytes) => hex(bytes).into(),
        Scalar::Enum(_, Some(name)) => (*name).into(),
        Scalar::Enum(number, None) => (*number).into(),
    }
}

fn reading(reading: &Reading) -> Json {
    let value = match reading {
        Reading::Integer(number, _) => integer(*number),
        Reading::Bool(truth) => (*truth).into(),
        Reading::Double(number) => float(*number, number),
        Reading::Float(number) => float((*number).into(), number),
        Reading::Time(time) => time.to_string().into(),
        Reading::String(text) => (*text).into(),
        Reading::Message { records } => json!({ "fields": records }),
        Reading::PackedVarint(numbers) | Reading::PackedI64(numbers) => {
            numbers.iter().map(|number| integer((*number).into())).collect()
        }
        Reading::PackedI32(numbers) => numbers.clone().into(),
        Reading::Bytes(bytes) => hex(bytes).into(),
    };
    json!({ "as": reading.types(), "value": value })
}

fn integer(number: i128) -> Json {
    match i64::try_from(number) {
        Ok(exact) if number.abs() <= EXACT_MAX => exact.into(),
        _ => number.to_string().into(),
    }
}

/// Returns a number, or text for values that JSON cannot express. `written` keeps the shortest form of a float.
fn float(number: f64, written: &impl std::fmt::Debug) -> Json {
    if number.is_finite() {
        let text = format!("{written:?}");
        text.parse().map_or_else(|_| text.clone().into(), |number: f64| number.into())
    } else {
        format!("{written:?}").into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        // Writing to a String does not fail.
        let _ = std::fmt::Write::write_fmt(&mut hex, format_args!("{byte:02x}"));
        hex
    })
}

fn sizes(inspection: &Inspection) -> Json {
    let sizes = Sizes::of(inspection);
    let [tags, lengths, payload] = sizes.account.parts();
    let fields: Vec<Json> = sizes
        .account
        .fields()
        .into_iter()
        .map(|field| {
            json!({
                "path": field.path, "name": field.name, "times": field.count, "tags": field.tag,
                "lengths": field.length, "payload": field.payload, "total": field.total,
            })
        })
        .collect();
    let formats: Vec<Json> = sizes
        .formats
        .iter()
        .map(|form| json!({ "form": form.name, "bytes": form.bytes, "gzip": form.gzip, "zstd": form.zstd }))
        .collect();
    json!({
        "framing": sizes.framing, "tags": tags, "lengths": lengths, "payload": payload,
        "no_fields": sizes.account.rest(), "fields": fields, "forms": formats,
    })
}
