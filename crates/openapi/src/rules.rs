//! Rules for calling services with JSON over HTTP: the [`google.api.http`] annotations of a schema as validated
//! bindings.
//!
//! [`google.api.http`]: https://github.com/googleapis/googleapis/blob/master/google/api/http.proto

mod annotation;
mod template;

use std::collections::HashMap;

use http::Method;
use thalweg_protobuf as protobuf;
use thalweg_protobuf::wire::WireError;
use thalweg_protobuf::{Field, Kind, MessageId, MessageType, Schema, WellKnown};
use thiserror::Error;

use annotation::HttpRule;
pub use template::{Segment, Template, TemplateError, Variable};

/// The bindings of a set of services.
#[derive(Clone, Debug)]
pub struct Rules {
    schema: Schema,
    bindings: Vec<Binding>,
}

/// A way to call a method: an HTTP method and path, and the mapping of message fields to the request.
#[derive(Clone, Debug)]
pub struct Binding {
    path: Box<str>,
    http_method: Option<Method>,
    template: Template,
    variables: Vec<FieldPath>,
    body: BodyMapping,
    response_body: Option<u32>,
    update_mask: Option<u32>,
    input: MessageId,
    output: MessageId,
    is_client_streaming: bool,
    is_server_streaming: bool,
    is_annotated: bool,
}

/// The path to a nested field: field numbers, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Box<[u32]>);

/// The content of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyMapping {
    /// No body.
    Absent,
    /// `*`: the request message, except for fields in the path.
    Whole,
    /// The value of the request's field with this number.
    Field(u32),
}

/// Error for services with invalid annotations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The schema has no such service.
    #[error("unknown service `{service}`: not in the descriptors")]
    UnknownService {
        /// Its full name.
        service: String,
    },
    /// An annotation is invalid.
    #[error("{method}: google.api.http: {problem}")]
    Rule {
        /// `package.Service.Method`.
        method: String,
        /// The problem.
        problem: RuleProblem,
    },
    /// Two bindings match the same requests.
    #[error("{first} and {second} are both `{http_method} {template}`; change the path of one")]
    Conflict {
        /// `package.Service.Method`.
        first: String,
        /// The other method; may be the same, with an additional binding.
        second: String,
        /// The HTTP method; `*` is any.
        http_method: String,
        /// The path of the first binding.
        template: String,
    },
}

/// A problem with an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleProblem {
    /// The bytes are not a `google.api.HttpRule`.
    #[error("invalid annotation: {0}")]
    Malformed(#[from] WireError),
    /// The rule has no path.
    #[error("missing path; set one of get, put, post, delete, patch and custom")]
    NoPattern,
    /// The kind of a `custom` pattern is not an HTTP method.
    #[error("invalid HTTP method `{kind}`; use a method, or * for all")]
    Kind {
        /// The kind.
        kind: String,
    },
    /// The path is invalid.
    #[error("invalid path {0}")]
    Template(#[from] TemplateError),
    /// An additional binding has `additional_bindings`.
    #[error("an additional binding cannot have additional bindings")]
    Nested,
    /// The message has no such field.
    #[error("{place}: {message} has no field `{field}`")]
    UnknownField {
        /// `path`, `body` or `response_body`.
        place: &'static str,
        /// Full name of the message.
        message: String,
        /// Name of the field.
        field: String,
    },
    /// A field is followed by a dot, but is not a singular message.
    #[error("path: `{field}` of {message} is not a message and has no fields")]
    NotAMessage {
        /// Full name of the enclosing message.
        message: String,
        /// Name of the field.
        field: String,
    },
    /// A variable is a repeated field.
    #[error("path: `{variable}` is repeated; use a singular field")]
    Repeated {
        /// The variable as written in the path.
        variable: String,
    },
    /// A variable is a message.
    #[error("path: `{variable}` is a message; use a string, number, boolean or enum")]
    MessageVariable {
        /// The variable as written in the path.
        variable: String,
    },
    /// A body is a nested field.
    #[error("{place}: `{field}` must be a field of the message itself, not of one in it")]
    Deep {
        /// `body` or `response_body`.
        place: &'static str,
        /// The field as given.
        field: String,
    },
}

impl Rules {
    /// Creates the bindings of `services`, which are full names. A method without an annotation is called by `POST
    /// /package.Service/Method`, with the request as its body.
    ///
    /// # Errors
    ///
    /// See [`RulesError`].
    pub fn new<S: AsRef<str>>(
        schema: &Schema,
        services: impl IntoIterator<Item = S>,
    ) -> Result<Rules, RulesError> {
        let mut bindings = Vec::new();
        for service in services {
            let service = service.as_ref();
            let found = schema.service(service);
            let found = found.ok_or_else(|| RulesError::UnknownService { service: service.to_owned() })?;
            for method in found.methods() {
                let added = add_bindings(method, &mut bindings);
                added.map_err(|problem| RulesError::Rule { method: dotted(&method.path()), problem })?;
            }
        }
        check_conflicts(&bindings)?;
        Ok(Rules { schema: schema.clone(), bindings })
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the bindings, grouped by service, in the order of its methods.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// Returns the request type.
    ///
    /// # Panics
    ///
    /// May panic if the binding belongs to other rules.
    pub fn input(&self, binding: &Binding) -> MessageType<'_> {
        self.schema.message_by_id(binding.input)
    }

    /// Returns the response type.
    ///
    /// # Panics
    ///
    /// May panic like [`Rules::input`].
    pub fn output(&self, binding: &Binding) -> MessageType<'_> {
        self.schema.message_by_id(binding.output)
    }
}

impl Binding {
    /// Returns the gRPC path: `/package.Service/Method`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the HTTP method, or `None` for any.
    pub fn http_method(&self) -> Option<&Method> {
        self.http_method.as_ref()
    }

    /// Returns the path template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Returns the fields of the template's variables, in order.
    pub fn variables(&self) -> &[FieldPath] {
        &self.variables
    }

    /// Returns the content of the request body.
    pub fn body(&self) -> BodyMapping {
        self.body
    }

    /// Returns the number of the field that is the response body, or `None` for the whole message.
    pub fn response_body(&self) -> Option<u32> {
        self.response_body
    }

    /// Returns the number of the FieldMask that is filled from the body if it is not given.
    pub fn update_mask(&self) -> Option<u32> {
        self.update_mask
    }

    /// Whether the client sends a stream of messages.
    pub fn is_client_streaming(&self) -> bool {
        self.is_client_streaming
    }

    /// Whether the server sends a stream of messages.
    pub fn is_server_streaming(&self) -> bool {
        self.is_server_streaming
    }

    /// Whether the method has an annotation; otherwise this is the default binding.
    pub fn is_annotated(&self) -> bool {
        self.is_annotated
    }
}

impl FieldPath {
    /// Returns the field numbers, outermost first; at least one.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }
}

fn add_bindings(method: protobuf::Method<'_>, bindings: &mut Vec<Binding>) -> Result<(), RuleProblem> {
    let Some(rule) = HttpRule::of_options(method.options())? else {
        // Cannot fail: names in a schema are identifiers separated by dots.
        let template = method.path().parse()?;
        let of = Unchecked { method, http_method: Some(Method::POST), template, is_annotated: false };
        bindings.push(of.binding("*", "")?);
        return Ok(());
    };
    for rule in std::iter::once(&rule).chain(&rule.additional_bindings) {
        let pattern = rule.pattern.as_ref().ok_or(RuleProblem::NoPattern)?;
        let of = Unchecked {
            method,
            http_method: http_method(&pattern.kind)?,
            template: pattern.path.parse()?,
            is_annotated: true,
        };
        bindings.push(of.binding(&rule.body, &rule.response_body)?);
    }
    if rule.additional_bindings.iter().any(|rule| !rule.additional_bindings.is_empty()) {
        return Err(RuleProblem::Nested);
    }
    Ok(())
}

fn http_method(kind: &str) -> Result<Option<Method>, RuleProblem> {
    if kind == "*" {
        return Ok(None);
    }
    let method = Method::from_bytes(kind.as_bytes());
    method.map(Some).map_err(|_| RuleProblem::Kind { kind: kind.to_owned() })
}

/// A binding whose fields are not resolved yet.
struct Unchecked<'s> {
    method: protobuf::Method<'s>,
    http_method: Option<Method>,
    template: Template,
    is_annotated: bool,
}

impl Unchecked<'_> {
    fn binding(self, body: &str, response_body: &str) -> Result<Binding, RuleProblem> {
        let Unchecked { method, http_method, template, is_annotated } = self;
        let (input, output) = (method.input(), method.output());
        let variables = template
            .variables()
            .iter()
            .map(|variable| variable_path(input, &variable.field_path))
            .collect::<Result<Vec<FieldPath>, RuleProblem>>()?;
        let (body, body_field) = match body {
            "" => (BodyMapping::Absent, None),
            "*" => (BodyMapping::Whole, None),
            name => {
                let field = top_field("body", input, name)?;
                (BodyMapping::Field(field.number()), Some(field))
            }
        };
        let response_body = match response_body {
            "" => None,
            name => Some(top_field("response_body", output, name)?.number()),
        };
        let is_patch = http_method == Some(Method::PATCH);
        let has_fields = |field: Field<'_>| has_fields(field);
        let update_mask = if is_patch && body_field.is_some_and(has_fields) { mask_of(input) } else { None };
        Ok(Binding {
            path: method.path().into(),
            http_method,
            template,
            variables,
            body,
            response_body,
            update_mask,
            input: input.id(),
            output: output.id(),
            is_client_streaming: method.is_client_streaming(),
            is_server_streaming: method.is_server_streaming(),
            is_annotated,
        })
    }
}

/// Resolves the field of a variable, which must be singular and not a message.
fn variable_path(message: MessageType<'_>, variable: &str) -> Result<FieldPath, RuleProblem> {
    let mut numbers = Vec::new();
    let mut message = message;
    let mut names = variable.split('.').peekable();
    while let Some(name) = names.next() {
        let Some(field) = message.field(name) else {
            let (message, field) = (message.full_name().to_owned(), name.to_owned());
            return Err(RuleProblem::UnknownField { place: "path", message, field });
        };
        numbers.push(field.number());
        let nested = field.message_type().filter(|_| !field.is_repeated());
        match (names.peek(), nested) {
            (Some(_), Some(nested)) => message = nested,
            (Some(_), None) => {
                let (message, field) = (message.full_name().to_owned(), name.to_owned());
                return Err(RuleProblem::NotAMessage { message, field });
            }
            (None, _) if field.is_repeated() => {
                return Err(RuleProblem::Repeated { variable: variable.to_owned() });
            }
            (None, Some(_)) => return Err(RuleProblem::MessageVariable { variable: variable.to_owned() }),
            (None, None) => {}
        }
    }
    Ok(FieldPath(numbers.into()))
}

fn top_field<'s>(
    place: &'static str,
    message: MessageType<'s>,
    name: &str,
) -> Result<Field<'s>, RuleProblem> {
    if name.contains('.') {
        return Err(RuleProblem::Deep { place, field: name.to_owned() });
    }
    message.field(name).ok_or_else(|| RuleProblem::UnknownField {
        place,
        message: message.full_name().to_owned(),
        field: name.to_owned(),
    })
}

/// Whether the type is `google.api.HttpBody`, whose messages are sent as raw bodies.
pub fn is_http_body(message: MessageType<'_>) -> bool {
    message.full_name() == "google.api.HttpBody"
}

/// Whether its JSON is an object with the fields of a message.
fn has_fields(field: Field<'_>) -> bool {
    let message = field.message_type().filter(|_| !field.is_repeated());
    message.is_some_and(|message| message.well_known().is_none() && !is_http_body(message))
}

/// Returns the FieldMask field that selects the fields a PATCH changes, by its name.
fn mask_of(message: MessageType<'_>) -> Option<u32> {
    let field = message.field("update_mask").filter(|field| !field.is_repeated())?;
    let is_mask = field.kind() == Kind::Message
        && field.message_type().is_some_and(|mask| mask.well_known() == Some(WellKnown::FieldMask));
    is_mask.then(|| field.number())
}

fn check_conflicts(bindings: &[Binding]) -> Result<(), RulesError> {
    let mut seen: HashMap<(String, Option<&Method>), &Binding> = HashMap::new();
    for binding in bindings {
        let key = (binding.template.shape(), binding.http_method());
        if let Some(first) = seen.insert(key, binding) {
            return Err(RulesError::Conflict {
                first: dotted(&first.path),
                second: dotted(&binding.path),
                http_method: binding.http_method().map_or("*", Method::as_str).to_owned(),
                template: first.template.to_string(),
            });
        }
    }
    Ok(())
}

/// Converts `/package.Service/Method` to a full name.
fn dotted(path: &str) -> String {
    path.trim_start_matches('/').replace('/', ".")
}
