//! Requests from CSV rows.

use serde_json::{Map, Value};
use thalweg_dynamic::ResolvedMethod;
use thalweg_protobuf::{Field, Kind, MessageType};

use super::error::SpecError;

/// A column, named by the first row: a field, or a nested field with dots.
struct Column<'s> {
    name: &'s str,
    path: Vec<&'s str>,
    /// Cells are JSON: lists, maps and messages.
    is_json: bool,
    /// Cells may be JSON, such as a Struct, or not, such as a Timestamp.
    may_be_json: bool,
    is_bool: bool,
}

/// Returns each row as the JSON of a request. An empty cell means that the field is absent. Cells are written as in
/// JSON without quotes, and lists, maps and messages as JSON.
pub(super) fn documents(data: &[u8], called: &ResolvedMethod) -> Result<Vec<Vec<u8>>, SpecError> {
    let bad = |why: String| SpecError::invalid(format!("rows of -d: {why}"));
    let message = called
        .schema
        .message(&called.request_type)
        .ok_or_else(|| bad("the schema lacks the request type".to_owned()))?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::Headers).from_reader(data);
    let names = reader.headers().map_err(|error| bad(error.to_string()))?.clone();
    let columns =
        names.iter().map(|name| Column::named(name, message).map_err(bad)).collect::<Result<Vec<_>, _>>()?;
    let mut documents = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| bad(error.to_string()))?;
        let mut members = Map::new();
        for (column, cell) in columns.iter().zip(&row) {
            if !cell.is_empty() {
                let value = column.value(cell);
                let line = row.position().map_or(0, csv::Position::line);
                put(&mut members, &column.path, value.map_err(|why| bad(format!("line {line}: {why}")))?);
            }
        }
        documents.push(Value::Object(members).to_string().into_bytes());
    }
    if documents.is_empty() {
        return Err(bad("no rows after the header".to_owned()));
    }
    Ok(documents)
}

impl<'s> Column<'s> {
    fn named(name: &'s str, message: MessageType<'_>) -> Result<Self, String> {
        let path: Vec<&str> = name.split('.').collect();
        let mut within = message;
        let mut field: Option<Field<'_>> = None;
        for (depth, part) in path.iter().enumerate() {
            let found = within.field_by_json_name(part).or_else(|| within.field(part));
            let found = found.ok_or_else(|| format!("{} has no field `{part}`", within.full_name()))?;
            if depth + 1 < path.len() {
                within = match found.message_type() {
                    Some(message) if !found.is_repeated() && !found.is_map() => message,
                    _ => return Err(format!("`{part}` of `{name}` is not a message with fields")),
                };
            }
            field = Some(found);
        }
        let field = field.ok_or_else(|| format!("missing field name in `{name}`"))?;
        let message = field.message_type();
        let is_plain_message = message.is_some_and(|message| message.well_known().is_none());
        let is_wrapped_bool =
            message.is_some_and(|message| message.full_name() == "google.protobuf.BoolValue");
        Ok(Self {
            name,
            path,
            is_json: field.is_repeated() || field.is_map() || is_plain_message,
            may_be_json: message.is_some(),
            is_bool: !field.is_repeated() && (field.kind() == Kind::Bool || is_wrapped_bool),
        })
    }

    fn value(&self, cell: &str) -> Result<Value, String> {
        let is_json = self.is_json || self.may_be_json && cell.starts_with(['{', '[']);
        match (is_json, self.is_bool, cell) {
            (_, true, "true") => Ok(Value::Bool(true)),
            (_, true, "false") => Ok(Value::Bool(false)),
            (_, true, _) => Err(format!("`{cell}` in `{}` is neither true nor false", self.name)),
            (true, _, _) => serde_json::from_str(cell)
                .map_err(|error| format!("`{cell}` in `{}` is not valid JSON: {error}", self.name)),
            // ProtoJSON accepts numbers in quotes.
            _ => Ok(Value::String(cell.to_owned())),
        }
    }
}

fn put(members: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [name] => {
            members.insert((*name).to_owned(), value);
        }
        [name, rest @ ..] => {
            let within = members.entry(*name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(within) = within {
                put(within, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_protobuf::{Schema, sources};

    use super::*;
    use thalweg_dynamic::texts::MessageFormat;

    fn called() -> ResolvedMethod {
        let source = "syntax = 'proto3'; message Order { int64 order_id = 1; string note = 2; bool paid = 3; \
                      repeated string tags = 4; Customer customer = 5; message Customer { string name = 1; } }";
        let set = sources::compile(&["o.proto"], |_| Some(source.to_owned())).unwrap();
        ResolvedMethod {
            schema: Schema::from_descriptor_set(&set).unwrap(),
            path: "/a.B/C".to_owned(),
            request_type: "Order".to_owned(),
            response_type: "Order".to_owned(),
            is_client_streaming: false,
            is_server_streaming: false,
        }
    }

    fn texts(csv: &str) -> Result<Vec<String>, String> {
        let documents = documents(csv.as_bytes(), &called()).map_err(|error| error.to_string())?;
        Ok(documents.into_iter().map(|text| String::from_utf8(text).unwrap()).collect())
    }

    #[test]
    fn each_csv_row_becomes_a_request() {
        let rows = "order_id, note,paid,tags,customer.name\n7,\"[a, b]\",true,\"[\"\"x\"\"]\",Ada\n8,,,,\n";
        let texts = texts(rows).unwrap();
        assert_eq!(
            texts,
            [
                r#"{"order_id":"7","note":"[a, b]","paid":true,"tags":["x"],"customer":{"name":"Ada"}}"#
                    .parse::<Value>()
                    .unwrap()
                    .to_string(),
                r#"{"order_id":"8"}"#.to_owned()
            ]
        );
        for text in texts {
            called().encoded(MessageFormat::Json, text.as_bytes(), false).unwrap();
        }
    }

    #[test]
    fn invalid_csv_rows_are_reported() {
        for (csv, expected) in [
            ("id\n7\n", "Order has no field `id`"),
            ("note.length\n7\n", "`note` of `note.length` is not a message"),
            ("paid\nyes\n", "line 2: `yes` in `paid` is neither true nor false"),
            ("tags\nx\n", "line 2: `x` in `tags` is not valid JSON"),
            ("note\n", "no rows after the header"),
            ("note,paid\na\n", "found record with 1 fields"),
        ] {
            let error = texts(csv).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
