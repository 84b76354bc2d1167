//! Path templates in OpenAPI's form.

use thalweg_protobuf::{Field, MessageType};

use super::call::Call;
use crate::rules::{FieldPath, Segment, Template, Variable};

/// A path and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    segments: Vec<PathSegment>,
    verb: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathSegment {
    Literal(Box<str>),
    Parameter(Parameter),
}

/// A parameter for one or several path segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// Index of the template variable that it is, or is part of.
    pub(super) variable: Option<usize>,
    /// Whether it is the whole variable.
    pub(super) is_whole_variable: bool,
    /// Whether it may contain slashes.
    pub(super) is_rest: bool,
}

impl Path {
    pub(super) fn new(call: &Call<'_>) -> Path {
        let template = call.binding.template();
        let mut path = Path { segments: Vec::new(), verb: template.verb().map(Into::into) };
        for (index, segment) in template.segments().iter().enumerate() {
            let part = match segment {
                Segment::Literal(text) => PathSegment::Literal(text.clone()),
                Segment::Any | Segment::Rest => {
                    let mut parameter = parameter(call, index, *segment == Segment::Rest);
                    path.make_unique(&mut parameter.name);
                    PathSegment::Parameter(parameter)
                }
            };
            path.segments.push(part);
        }
        path
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.segments.iter().filter_map(|part| match part {
            PathSegment::Parameter(parameter) => Some(parameter),
            PathSegment::Literal(_) => None,
        })
    }

    /// Returns the path: `/v1/shelves/{shelf}/books/{book}:publish`.
    pub(super) fn text(&self) -> String {
        self.render(|parameter| &parameter.name)
    }

    /// Returns the path without names; to OpenAPI, paths of the same shape are equal.
    pub(super) fn shape(&self) -> String {
        self.render(|_| "")
    }

    /// Returns the segments of a variable: `shelves/{shelf}/books/{book}`.
    pub(super) fn text_of(&self, variable: &Variable) -> String {
        let segments = self.segments[variable.segments.clone()].iter();
        let segments: Vec<String> = segments.map(|part| part.render(&|parameter| &parameter.name)).collect();
        segments.join("/")
    }

    /// Returns this path with the parameter names of another of the same shape.
    pub(super) fn with_names_of(mut self, like: &Path) -> Path {
        for (part, like) in self.segments.iter_mut().zip(&like.segments) {
            if let (PathSegment::Parameter(parameter), PathSegment::Parameter(like)) = (part, like) {
                parameter.name.clone_from(&like.name);
            }
        }
        self
    }

    fn render<'p>(&'p self, name: impl Fn(&'p Parameter) -> &'p str) -> String {
        let segments = self.segments.iter().map(|part| format!("/{}", part.render(&name)));
        let mut text: String = segments.collect();
        if text.is_empty() {
            text.push('/');
        }
        if let Some(verb) = &self.verb {
            text.push(':');
            text.push_str(verb);
        }
        text
    }

    fn make_unique(&self, name: &mut String) {
        let is_taken = |name: &str| self.parameters().any(|parameter| parameter.name == name);
        let plain = name.clone();
        let mut number = 2;
        while is_taken(name) {
            *name = format!("{plain}{number}");
            number += 1;
        }
    }
}

impl PathSegment {
    fn render<'p>(&'p self, name: &impl Fn(&'p Parameter) -> &'p str) -> String {
        match self {
            PathSegment::Literal(text) => text.to_string(),
            PathSegment::Parameter(parameter) => format!("{{{}}}", name(parameter)),
        }
    }
}

fn parameter(call: &Call<'_>, segment: usize, is_rest: bool) -> Parameter {
    let template = call.binding.template();
    let variables = template.variables().iter();
    let variable = variables.enumerate().find(|(_, variable)| variable.segments.contains(&segment));
    let of_variable = variable.map(|(index, _)| variable_name(call, &call.binding.variables()[index]));
    let is_whole_variable = variable.is_some_and(|(_, variable)| variable.segments.len() == 1);
    let name = match of_variable {
        Some(name) if is_whole_variable => name,
        of_variable => collection(template, segment)
            .or_else(|| of_variable?.rsplit('.').next().map(str::to_owned))
            .unwrap_or_else(|| if is_rest { "rest".to_owned() } else { "segment".to_owned() }),
    };
    Parameter { name, variable: variable.map(|(index, _)| index), is_whole_variable, is_rest }
}

/// Returns the name of its field, from JSON or the schema.
fn variable_name(call: &Call<'_>, path: &FieldPath) -> String {
    let fields = fields_of(call.method.input(), path);
    let names: Vec<&str> = fields.iter().map(|field| call.info.name(*field)).collect();
    names.join(".")
}

/// Returns the fields on a path, outermost first.
pub(super) fn fields_of<'s>(message: MessageType<'s>, path: &FieldPath) -> Vec<Field<'s>> {
    let mut fields = Vec::with_capacity(path.numbers().len());
    let mut message = Some(message);
    for &number in path.numbers() {
        let Some(field) = message.and_then(|message| message.field_by_number(number)) else { break };
        message = field.message_type();
        fields.push(field);
    }
    fields
}

/// Returns the singular of the preceding literal: `shelf` after `shelves`.
fn collection(template: &Template, segment: usize) -> Option<String> {
    let Segment::Literal(plural) = template.segments().get(segment.checked_sub(1)?)? else { return None };
    let is_word = plural.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    is_word.then(|| singular(plural)).flatten()
}

fn singular(plural: &str) -> Option<String> {
    const ENDINGS: [(&str, &str); 10] = [
        ("ss", ""),
        ("us", ""),
        ("ies", "y"),
        ("lves", "lf"),
        ("sses", "ss"),
        ("xes", "x"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("s", ""),
        ("", ""),
    ];
    let (plural_end, end) = ENDINGS.iter().find(|(ending, _)| plural.ends_with(ending))?;
    let is_plural = !matches!(*plural_end, "ss" | "us" | "");
    let stem = plural.strip_suffix(plural_end).filter(|stem| is_plural && !stem.is_empty())?;
    Some(format!("{stem}{end}"))
}

#[cfg(test)]
mod tests {
    use super::singular;

    #[test]
    fn collections_have_members() {
        for (plural, one) in [
            ("shelves", Some("shelf")),
            ("books", Some("book")),
            ("archives", Some("archive")),
            ("policies", Some("policy")),
            ("addresses", Some("address")),
            ("boxes", Some("box")),
            ("branches", Some("branch")),
            ("status", None),
            ("glass", None),
            ("v1", None),
            ("s", None),
        ] {
            assert_eq!(singular(plural).as_deref(), one, "{plural}");
        }
    }
}
