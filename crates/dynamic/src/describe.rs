//! Lists names and prints declarations (in `.proto` syntax) and request templates.

use thalweg_protobuf::{Field, Kind, MessageType, Oneof, Schema};
use thalweg_protobuf_text::declarations::Declarations;

use crate::catalogue::Catalogue;
use crate::resolved_method::{LookUpError, files_hint, unknown_service};
use crate::suggestions::listed;

/// Maximum nesting of messages in a template. Deeper messages are empty, which also ends recursive types.
const TEMPLATE_DEPTH: usize = 3;

/// Returns the names of the services, or of the methods of one.
///
/// # Errors
///
/// Returns an error for an unknown service, or if reflection fails.
pub async fn list(catalogue: &mut Catalogue, service: Option<&str>) -> Result<Vec<String>, LookUpError> {
    let Some(name) = service else { return Ok(catalogue.services().await?) };
    let schema = catalogue.schema_of(name).await?;
    let Some(service) = schema.as_ref().and_then(|schema| schema.service(name)) else {
        return Err(unknown_service(catalogue, name).await);
    };
    Ok(service.methods().map(|method| method.path().trim_start_matches('/').to_owned()).collect())
}

/// Returns the declaration of a symbol or, with `is_template`, a request with all fields. Without a symbol, returns the
/// declarations of all services.
///
/// # Errors
///
/// Returns an error for an unknown symbol, or if reflection fails.
pub async fn describe(
    catalogue: &mut Catalogue,
    symbol: Option<&str>,
    is_template: bool,
) -> Result<String, LookUpError> {
    let Some(symbol) = symbol else {
        let services = catalogue.services().await?;
        for name in &services {
            catalogue.schema_of(name).await?;
        }
        let declarations = Declarations::of(&catalogue.descriptor_set())?;
        let texts: Vec<String> =
            services.iter().filter_map(|name| declaration_with_heading(&declarations, name)).collect();
        return Ok(texts.join("\n"));
    };
    // Reflection names methods `package.Service.Method`.
    let symbol = symbol.replace('/', ".");
    let Some(schema) = catalogue.schema_of(&symbol).await? else {
        let known = catalogue.services().await.unwrap_or_default();
        let services = listed(known.iter().map(String::as_str));
        return Err(LookUpError::Unknown(format!(
            "unknown symbol `{symbol}`; use the full name with the package; services are {services}{}",
            files_hint(catalogue)
        )));
    };
    let text = if is_template {
        template(&schema, &symbol)
    } else {
        declaration(&Declarations::of(&catalogue.descriptor_set())?, &schema, &symbol)
    };
    text.ok_or_else(|| LookUpError::Unknown(format!("`{symbol}` is not a service, method or type")))
}

/// Returns the declaration of a symbol. For a method it includes the declarations of its types.
fn declaration(declarations: &Declarations, schema: &Schema, symbol: &str) -> Option<String> {
    let mut text = declaration_with_heading(declarations, symbol)?;
    let method = symbol.rsplit_once('.').and_then(|(service, name)| schema.service(service)?.method(name));
    if let Some(method) = method {
        let (input, output) = (method.input(), method.output());
        for message in [Some(input), (input != output).then_some(output)].into_iter().flatten() {
            text.push('\n');
            text.push_str(&declaration_with_heading(declarations, message.full_name())?);
        }
    }
    Some(text)
}

/// Returns a declaration below a comment with its full name and file.
fn declaration_with_heading(declarations: &Declarations, symbol: &str) -> Option<String> {
    let (file, text) = (declarations.file_of(symbol)?, declarations.get(symbol)?);
    Some(format!("// {symbol}, declared in {file}\n{text}"))
}

/// Returns a request with all fields of a message or of a method's request.
fn template(schema: &Schema, symbol: &str) -> Option<String> {
    let request_type = || {
        let (service, method) = symbol.rsplit_once('.')?;
        Some(schema.service(service)?.method(method)?.input())
    };
    let message = schema.message(symbol).or_else(request_type)?;
    Some(message_template(message, TEMPLATE_DEPTH, 0))
}

/// Returns JSON with all fields in order of declaration. Lists and maps have one element, oneofs their first member.
fn message_template(message: MessageType<'_>, depth: usize, indent: usize) -> String {
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
            // Only the first member of a oneof.
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
                format!("{{\"{key}\": {}}}", value_template(value, depth - 1, indent + 2))
            }
            None if field.is_list() => format!("[{}]", value_template(field, depth - 1, indent + 2)),
            None => value_template(field, depth - 1, indent + 2),
        };
        members.push(format!("\n{:1$}  \"{2}\": {value}", "", indent, field.json_name()));
    }
    if members.is_empty() {
        return "{}".to_owned();
    }
    format!("{{{}\n{:2$}}}", members.join(","), "", indent)
}

fn value_template(field: Field<'_>, depth: usize, indent: usize) -> String {
    if let Some(message) = field.message_type() {
        return message_template(message, depth, indent);
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

/// Returns the template of a type with special JSON.
fn well_known(name: &str) -> Option<&'static str> {
    Some(match name {
        // The content type is unknown.
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

    fn set() -> Vec<u8> {
        sources::compile(&["shop.proto"], |name| (name == "shop.proto").then(|| SOURCE.to_owned())).unwrap()
    }

    fn schema() -> Schema {
        Schema::from_descriptor_set(&set()).unwrap()
    }

    #[test]
    fn method_declaration_includes_its_types() {
        let declarations = Declarations::of(&set()).unwrap();
        let text = declaration(&declarations, &schema(), "shop.Orders.Place").unwrap();
        let item = "// shop.Item, declared in shop.proto\nmessage Item {\n  string name = 1;\n  \
                    repeated shop.Item parts = 2;\n}\n";
        assert!(
            text.starts_with("// shop.Orders.Place, declared in shop.proto\nrpc Place(shop.Order)"),
            "{text}"
        );
        assert!(text.contains("\n\n// shop.Order, declared in shop.proto\nmessage Order {\n"), "{text}");
        assert!(text.ends_with(item), "{text}");
        let watch = declaration(&declarations, &schema(), "shop.Orders.Watch").unwrap();
        assert_eq!(watch.matches("message Order").count(), 1, "{watch}");
        assert_eq!(declaration(&declarations, &schema(), "shop.Nothing"), None);
    }

    #[test]
    fn template_has_all_fields_and_parses_as_a_request() {
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
