//! `thalweg call describe`: declarations, as `.proto` files have them.

use std::fmt::Write;
use std::process::ExitCode;

use thalweg_dynamic::{Catalogue, listed};
use thalweg_protobuf::{Cardinality, EnumType, Field, Kind, MessageType, Method, Oneof, Schema, Service};

use super::printer;
use crate::failure::Failure;

/// Messages within one another of a template: deeper ones are empty, as those that hold themselves must be.
const TEMPLATE_DEPTH: usize = 3;

/// Prints what a symbol is, or all services.
pub(super) async fn run(
    catalogue: &mut Catalogue,
    symbol: Option<&str>,
    is_template: bool,
) -> Result<ExitCode, Failure> {
    let Some(symbol) = symbol else {
        let mut texts = Vec::new();
        for name in catalogue.services().await.map_err(Failure::failed)? {
            if let Some(schema) = catalogue.schema_of(&name).await.map_err(Failure::failed)?
                && let Some(service) = schema.service(&name)
            {
                texts.push(service_text(service));
            }
        }
        printer::lines([texts.join("\n")])?;
        return Ok(ExitCode::SUCCESS);
    };
    // gRPC's reflection knows methods by `package.Service.Method`.
    let symbol = symbol.replace('/', ".");
    let Some(schema) = catalogue.schema_of(&symbol).await.map_err(Failure::failed)? else {
        let known = catalogue.services().await.unwrap_or_default();
        let services = listed(known.iter().map(String::as_str));
        return Err(Failure::bad_arguments(format!(
            "there is no `{symbol}`; the services are {services}: say the full name, with the package"
        )));
    };
    let text = if is_template { template(&schema, &symbol) } else { declaration(&schema, &symbol) };
    let Some(text) = text else {
        return Err(Failure::bad_arguments(format!("`{symbol}` is neither a service, a method nor a type")));
    };
    printer::lines([text.trim_end().to_owned()])?;
    Ok(ExitCode::SUCCESS)
}

fn declaration(schema: &Schema, symbol: &str) -> Option<String> {
    if let Some(service) = schema.service(symbol) {
        return Some(service_text(service));
    }
    if let Some(message) = schema.message(symbol) {
        return Some(message_text(message));
    }
    if let Some(enumeration) = schema.enumeration(symbol) {
        return Some(enum_text(enumeration));
    }
    if let Some(extension) = schema.extension(symbol) {
        let extended = extension.message().full_name();
        return Some(format!("extend {extended} {{\n  {}\n}}\n", field_text(extension)));
    }
    let (service, method) = symbol.rsplit_once('.')?;
    let method = schema.service(service)?.method(method)?;
    let (input, output) = (method.input(), method.output());
    let mut text = format!("{}\n\n{}", method_text(method), message_text(input));
    if input != output {
        text.push('\n');
        text.push_str(&message_text(output));
    }
    Some(text)
}

fn service_text(service: Service<'_>) -> String {
    let mut text = format!("// {}\nservice {} {{\n", service.file().name(), service.full_name());
    for method in service.methods() {
        let _ = writeln!(text, "  {}", method_text(method));
    }
    text + "}\n"
}

fn method_text(method: Method<'_>) -> String {
    let stream = |is_stream: bool| if is_stream { "stream " } else { "" };
    format!(
        "rpc {}({}{}) returns ({}{});",
        method.name(),
        stream(method.is_client_streaming()),
        method.input().full_name(),
        stream(method.is_server_streaming()),
        method.output().full_name(),
    )
}

fn message_text(message: MessageType<'_>) -> String {
    let mut text = format!("// {}\nmessage {} {{\n", message.file().name(), message.full_name());
    let mut oneofs: Vec<Oneof<'_>> = Vec::new();
    for field in message.fields() {
        match field.oneof() {
            Some(oneof) if oneofs.contains(&oneof) => {}
            Some(oneof) => {
                oneofs.push(oneof);
                let _ = writeln!(text, "  oneof {} {{", oneof.name());
                for field in oneof.fields() {
                    let _ = writeln!(text, "    {}", field_text(field));
                }
                text.push_str("  }\n");
            }
            None => {
                let _ = writeln!(text, "  {}", field_text(field));
            }
        }
    }
    text + "}\n"
}

/// `repeated shop.Item items = 3;`, with the values of an enum behind it.
fn field_text(field: Field<'_>) -> String {
    let (label, kind) = match field.map_entry() {
        Some((key, value)) => (String::new(), format!("map<{}, {}>", key.kind(), type_name(value))),
        None => (label(field).to_owned(), type_name(field)),
    };
    let mut text = format!("{label}{kind} {} = {};", field.name(), field.number());
    if let Some(enumeration) = field.enum_type() {
        let _ = write!(text, " // {}", listed(enumeration.values().map(thalweg_protobuf::EnumValue::name)));
    }
    text
}

fn label(field: Field<'_>) -> &'static str {
    match field.cardinality() {
        _ if field.is_list() => "repeated ",
        _ if field.is_required() => "required ",
        Cardinality::Required => "required ",
        // Messages and members of a oneof have presence anyway.
        _ if field.has_presence() && field.message_type().is_none() && field.oneof().is_none() => "optional ",
        _ => "",
    }
}

fn type_name(field: Field<'_>) -> String {
    match (field.message_type(), field.enum_type()) {
        (Some(message), _) => message.full_name().to_owned(),
        (None, Some(enumeration)) => enumeration.full_name().to_owned(),
        (None, None) => field.kind().to_string(),
    }
}

fn enum_text(enumeration: EnumType<'_>) -> String {
    let mut text = format!("// {}\nenum {} {{\n", enumeration.file().name(), enumeration.full_name());
    for value in enumeration.values() {
        let _ = writeln!(text, "  {} = {};", value.name(), value.number());
    }
    text + "}\n"
}

/// A request with all fields of a message, or of the request of a method.
fn template(schema: &Schema, symbol: &str) -> Option<String> {
    let of_method = || {
        let (service, method) = symbol.rsplit_once('.')?;
        Some(schema.service(service)?.method(method)?.input())
    };
    let message = schema.message(symbol).or_else(of_method)?;
    Some(template_of(message, TEMPLATE_DEPTH, 0))
}

/// JSON with all fields of a message, as they are declared, one element in each list and map; of a oneof its first
/// member.
fn template_of(message: MessageType<'_>, depth: usize, indent: usize) -> String {
    if let Some(text) = well_known(message.full_name()) {
        return text.to_owned();
    }
    if depth == 0 {
        return "{}".to_owned();
    }
    let mut seen: Vec<Oneof<'_>> = Vec::new();
    let mut members = Vec::new();
    for field in message.fields() {
        if let Some(oneof) = field.oneof() {
            // One of them: the first.
            if seen.contains(&oneof) {
                continue;
            }
            seen.push(oneof);
        }
        let value = match field.map_entry() {
            Some((key, value)) => {
                let key = match key.kind() {
                    Kind::Bool => "false",
                    Kind::String => "",
                    _ => "0",
                };
                format!("{{\"{key}\": {}}}", value_of(value, depth - 1, indent + 2))
            }
            None if field.is_list() => format!("[{}]", value_of(field, depth - 1, indent + 2)),
            None => value_of(field, depth - 1, indent + 2),
        };
        members.push(format!("\n{:1$}  \"{2}\": {value}", "", indent, field.json_name()));
    }
    if members.is_empty() {
        return "{}".to_owned();
    }
    format!("{{{}\n{:2$}}}", members.join(","), "", indent)
}

fn value_of(field: Field<'_>, depth: usize, indent: usize) -> String {
    if let Some(message) = field.message_type() {
        return template_of(message, depth, indent);
    }
    if let Some(value) = field.enum_type().and_then(|enumeration| enumeration.values().next()) {
        return format!("\"{}\"", value.name());
    }
    match field.kind() {
        Kind::Bool => "false",
        Kind::String | Kind::Bytes => "\"\"",
        _ => "0",
    }
    .to_owned()
}

/// What types that have a JSON of their own look like.
fn well_known(name: &str) -> Option<&'static str> {
    Some(match name {
        // Of which type, only its user knows.
        "google.protobuf.Any" | "google.protobuf.Struct" => "{}",
        "google.protobuf.Timestamp" => "\"1970-01-01T00:00:00Z\"",
        "google.protobuf.Duration" => "\"0s\"",
        "google.protobuf.Value" | "google.protobuf.NullValue" => "null",
        "google.protobuf.ListValue" => "[]",
        "google.protobuf.BoolValue" => "false",
        "google.protobuf.FieldMask" | "google.protobuf.StringValue" | "google.protobuf.BytesValue" => "\"\"",
        "google.protobuf.DoubleValue"
        | "google.protobuf.FloatValue"
        | "google.protobuf.Int64Value"
        | "google.protobuf.UInt64Value"
        | "google.protobuf.Int32Value"
        | "google.protobuf.UInt32Value" => "0",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use thalweg_protobuf::{json, sources};

    use super::*;

    const SOURCE: &str = "
        syntax = 'proto3';
        package shop;
        import 'google/protobuf/timestamp.proto';
        import 'google/protobuf/any.proto';
        enum Size { SMALL = 0; LARGE = 1; }
        message Item { string name = 1; repeated Item parts = 2; }
        message Order {
            int64 user_id = 1;
            repeated Item items = 2;
            map<int32, Size> sizes = 3;
            oneof by { string mail = 4; Item letter = 5; }
            optional bool gift = 6;
            google.protobuf.Timestamp at = 7;
            google.protobuf.Any more = 8;
            bytes note = 9;
        }
        service Orders {
            rpc Place(Order) returns (Item);
            rpc Watch(stream Order) returns (stream Order);
        }";

    fn schema() -> Schema {
        let set = sources::compile(&["shop.proto"], |name| (name == "shop.proto").then(|| SOURCE.to_owned()));
        Schema::from_descriptor_set(&set.unwrap()).unwrap()
    }

    #[test]
    fn declarations_are_as_in_the_file() {
        let schema = schema();
        let check = |symbol: &str, expected: &str| {
            assert_eq!(declaration(&schema, symbol).as_deref(), Some(expected), "{symbol}");
        };
        check(
            "shop.Orders",
            "// shop.proto\nservice shop.Orders {\n  rpc Place(shop.Order) returns (shop.Item);\n  \
             rpc Watch(stream shop.Order) returns (stream shop.Order);\n}\n",
        );
        check("shop.Size", "// shop.proto\nenum shop.Size {\n  SMALL = 0;\n  LARGE = 1;\n}\n");
        check(
            "shop.Order",
            "// shop.proto\nmessage shop.Order {\n  int64 user_id = 1;\n  repeated shop.Item items = 2;\n  \
             map<int32, shop.Size> sizes = 3;\n  oneof by {\n    string mail = 4;\n    shop.Item letter = 5;\n  \
             }\n  optional bool gift = 6;\n  google.protobuf.Timestamp at = 7;\n  google.protobuf.Any more = 8;\n  \
             bytes note = 9;\n}\n",
        );
        assert!(declaration(&schema, "shop.Orders.Place").unwrap().starts_with("rpc Place(shop.Order)"));
        assert_eq!(declaration(&schema, "shop.Nothing"), None);
    }

    #[test]
    fn a_template_has_all_fields_and_is_a_request() {
        let schema = schema();
        let text = template(&schema, "shop.Orders.Place").unwrap();
        json::to_wire(schema.message("shop.Order").unwrap(), text.as_bytes()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["sizes"]["0"], "SMALL");
        assert_eq!(value["items"][0]["parts"][0]["parts"][0], serde_json::json!({}));
        assert_eq!((&value["mail"], &value["letter"]), (&"".into(), &serde_json::Value::Null));
        assert!(text.starts_with("{\n  \"userId\": 0,\n  \"items\": [{\n    \"name\": \"\","), "{text}");
    }
}
