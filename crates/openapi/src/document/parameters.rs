//! Path and query parameters.

use thalweg_protobuf::{Field, MessageType, WellKnown};

use super::call::Call;
use super::json::Object;

use super::path::{self, Path};
use super::schemas::{self, Schemas};
use super::text;
use crate::options::{Behavior, Deprecated};
use crate::rules::{BodyMapping, FieldPath};

/// Maximum number of parameters of an operation, which is also that of a request.
const PARAMETERS_MAX: usize = 1000;
/// Maximum number of fields visited.
const FIELDS_MAX: usize = 10_000;

/// The parameters of a query.
pub(super) struct Query {
    pub(super) parameters: Vec<Object>,
    /// Whether there are more.
    pub(super) is_truncated: bool,
}

/// Returns the path parameters in order.
pub(super) fn of_path<'r>(call: &Call<'r>, path: &Path, schemas: &mut Schemas<'r>) -> Vec<Object> {
    let template = call.binding.template();
    let object = |parameter: &path::Parameter| {
        let variable = parameter.variable.map(|index| (&template.variables()[index], index));
        let fields =
            variable.map(|(_, index)| path::fields_of(call.method.input(), &call.binding.variables()[index]));
        let field = fields.and_then(|fields| fields.last().copied());
        let mut description = match (variable, field) {
            (Some(_), Some(field)) if parameter.is_whole_variable => comment(call, field),
            (Some((variable, _)), Some(_)) => {
                format!("Of `{}`: `{}`.", variable.field_path, path.text_of(variable))
            }
            _ => String::new(),
        };
        if parameter.is_rest {
            text::add_paragraph(&mut description, "May contain slashes, which are not escaped.");
        }
        let schema = match field {
            Some(field) if parameter.is_whole_variable => schemas.of_field(field),
            _ => Object::new().with("type", "string"),
        };
        Object::new()
            .with("name", parameter.name.clone())
            .with("in", "path")
            .with_some("description", (!description.is_empty()).then_some(description))
            .with("required", true)
            .with("schema", schema)
    };
    path.parameters().map(object).collect()
}

/// Returns the query parameters: the fields that are in neither the path nor the body.
pub(super) fn of_query<'r>(call: &Call<'r>, schemas: &mut Schemas<'r>) -> Query {
    let query = Query { parameters: Vec::new(), is_truncated: false };
    if call.binding.body() == BodyMapping::Whole {
        return query;
    }
    let mut walk = FieldWalk { call, schemas, query, enclosing: Vec::new(), fields_left: FIELDS_MAX };
    walk.enter(call.method.input(), true);
    walk.query
}

/// Visits the fields of a message and its nested messages.
struct FieldWalk<'w, 'r> {
    call: &'w Call<'r>,
    schemas: &'w mut Schemas<'r>,
    query: Query,
    /// The enclosing fields, outermost first.
    enclosing: Vec<Field<'r>>,
    fields_left: usize,
}

impl<'r> FieldWalk<'_, 'r> {
    fn enter(&mut self, message: MessageType<'r>, is_required: bool) {
        for field in message.fields() {
            if self.fields_left == 0 || self.query.parameters.len() >= PARAMETERS_MAX {
                self.query.is_truncated = true;
                return;
            }
            self.fields_left -= 1;
            let behavior = Behavior::of(field);
            if behavior.is_output_only || self.is_in_path_or_body(field) {
                continue;
            }
            let is_required = is_required && behavior.is_required;
            self.enclosing.push(field);
            match field.message_type().map(|message| (message, message.well_known())) {
                Some((message, None)) if !field.is_repeated() => {
                    if !self.is_recursive(message) {
                        self.enter(message, is_required);
                    }
                }
                _ => {
                    let parameter = self.parameter(field, is_required);
                    self.query.parameters.extend(parameter);
                }
            }
            self.enclosing.pop();
        }
    }

    /// Whether the field is in the path or the body.
    fn is_in_path_or_body(&self, field: Field<'_>) -> bool {
        let is_body =
            self.enclosing.is_empty() && self.call.binding.body() == BodyMapping::Field(field.number());
        let numbers = || self.enclosing.iter().map(|field| field.number()).chain([field.number()]);
        let in_path = |path: &FieldPath| path.numbers().iter().copied().eq(numbers());
        is_body || self.call.binding.variables().iter().any(in_path)
    }

    /// Whether the walk is already inside such a message. The last of `enclosing` is the field itself.
    fn is_recursive(&self, message: MessageType<'_>) -> bool {
        let enclosing = &self.enclosing[..self.enclosing.len() - 1];
        self.call.method.input() == message
            || enclosing.iter().any(|field| field.message_type() == Some(message))
    }

    fn parameter(&mut self, field: Field<'r>, is_required: bool) -> Option<Object> {
        let names: Vec<&str> = self.enclosing.iter().map(|field| self.call.info.name(*field)).collect();
        let mut description = comment(self.call, field);
        let others: Vec<String> = field
            .oneof()
            .into_iter()
            .flat_map(thalweg_protobuf::Oneof::fields)
            .filter(|other| *other != field)
            .map(|other| format!("`{}`", self.call.info.name(other)))
            .collect();
        if !others.is_empty() {
            text::add_paragraph(&mut description, &format!("Cannot be combined with {}.", others.join(", ")));
        }
        let parameter = Object::new()
            .with("name", names.join("."))
            .with("in", "query")
            .with_some("description", (!description.is_empty()).then_some(description))
            .with_some("required", is_required.then_some(true))
            .with_some("deprecated", field.is_deprecated().then_some(true));
        if let Some((_, value)) = field.map_entry() {
            let is_text = value_form(value)? == ValueForm::Text;
            let value = if is_text { self.schemas.of_text(value) } else { json_text() };
            let schema = Object::new().with("type", "object").with("additionalProperties", value);
            return Some(parameter.with("style", "deepObject").with("explode", true).with("schema", schema));
        }
        Some(match (value_form(field)?, field.is_repeated()) {
            (ValueForm::Text, false) => parameter.with("schema", self.schemas.of_text(field)),
            (ValueForm::Text, true) => {
                parameter.with("schema", schemas::list_of(self.schemas.of_text(field)))
            }
            (ValueForm::Json, true) => parameter.with("schema", schemas::list_of(json_text())),
            (ValueForm::Json, false) => {
                let json = Object::new().with("schema", self.schemas.of_field(field));
                parameter.with("content", Object::new().with("application/json", json))
            }
        })
    }
}

/// The form of a value in a query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    Text,
    Json,
}

/// Returns `None` for messages, which have fields but no value.
fn value_form(field: Field<'_>) -> Option<ValueForm> {
    let Some(message) = field.message_type() else { return Some(ValueForm::Text) };
    match message.well_known()? {
        WellKnown::Struct | WellKnown::Value | WellKnown::ListValue | WellKnown::Any => Some(ValueForm::Json),
        WellKnown::Empty => None,
        WellKnown::Timestamp | WellKnown::Duration | WellKnown::FieldMask | WellKnown::Wrapper => {
            Some(ValueForm::Text)
        }
    }
}

fn json_text() -> Object {
    Object::new().with("type", "string").with("contentMediaType", "application/json")
}

fn comment(call: &Call<'_>, field: Field<'_>) -> String {
    call.info.comments.get(&field.full_name()).unwrap_or_default().to_owned()
}
