//! Query parameters: fields that are neither in the path nor in the body.

use std::collections::{HashMap, HashSet};

use thalweg_openapi::rules::{Binding, BodyMapping};
use thalweg_protobuf::json::{self, ParseOptions};
use thalweg_protobuf::printable::excerpt;
use thalweg_protobuf::{Field, MessageType};

use super::error::RequestError;
use super::nested;
use super::options::RequestOptions;
use super::value::{self, problem};
use crate::transcoding::percent::{self, UriComponent};

/// Reads the parameters of one request.
pub(super) struct Query<'s, 'r> {
    message: MessageType<'s>,
    binding: &'r Binding,
    options: &'r RequestOptions,
    /// Singular fields that have a value.
    assigned: HashSet<Vec<u32>>,
    /// Chosen members of oneofs, by the path to the first declared member.
    chosen: HashMap<Vec<u32>, u32>,
}

/// Target of a parameter.
struct Target<'s> {
    /// Outermost first.
    fields: Vec<Field<'s>>,
    /// The key in brackets, for an entry of a map.
    key: Option<String>,
}

impl<'s, 'r> Query<'s, 'r> {
    pub(super) fn new(message: MessageType<'s>, binding: &'r Binding, options: &'r RequestOptions) -> Self {
        Query { message, binding, options, assigned: HashSet::new(), chosen: HashMap::new() }
    }

    /// Appends the records of all parameters. Returns whether they include the binding's update mask.
    pub(super) fn put(mut self, query: &str, wire: &mut Vec<u8>) -> Result<bool, RequestError> {
        // Variables in the path choose oneof members too. Two members of one oneof there are the author's choice.
        for path in self.binding.variables() {
            let _ = self.check_is_first(&nested::fields_of(self.message, path));
        }
        let mut is_mask_given = false;
        let mut count = 0;
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            count += 1;
            if count > self.options.parameters_max {
                return Err(RequestError::TooManyParameters { max: self.options.parameters_max });
            }
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let error = |name: &str, problem| RequestError::Parameter { name: excerpt(name), problem };
            let component = UriComponent::Query { plus_is_space: self.options.plus_is_space };
            let decode = |text| percent::decode(text, component).map_err(|problem| problem.to_string());
            let decoded_name = decode(name).map_err(|problem| error(name, problem))?;
            // Parameters such as `$alt` are not fields.
            let is_ignored =
                |name: &str| self.options.ignored_parameters.iter().any(|ignored| ignored == name);
            if decoded_name.starts_with('$') || is_ignored(&decoded_name) {
                continue;
            }
            let put = decode(value).and_then(|value| self.put_parameter(&decoded_name, &value, wire));
            let first = put.map_err(|problem| error(&decoded_name, problem))?;
            is_mask_given |= first.is_some() && first == self.binding.update_mask();
        }
        Ok(is_mask_given)
    }

    /// Returns the number of the outermost field, or `None` if the parameter is ignored.
    fn put_parameter(&mut self, name: &str, text: &str, wire: &mut Vec<u8>) -> Result<Option<u32>, String> {
        let found = find(self.message, name).and_then(|target| self.check_is_free(&target).map(|()| target));
        let Target { fields, key } = match found {
            Ok(target) => target,
            Err(_) if self.options.parse.ignore_unknown => return Ok(None),
            Err(problem) => return Err(problem),
        };
        if fields.len() > self.options.parse.depth_max {
            return Err("messages are nested too deeply".to_owned());
        }
        self.check_is_first(&fields)?;
        let options = &self.options.parse;
        match key {
            None => value::put(&fields, text, options, wire)?,
            Some(key) => put_entry(&fields, &key, text, options, wire)?,
        }
        Ok(fields.first().map(|field| field.number()))
    }

    /// Fails if the field is in the path or the body.
    fn check_is_free(&self, target: &Target<'_>) -> Result<(), String> {
        let numbers = || target.fields.iter().map(|field| field.number());
        match self.binding.body() {
            BodyMapping::Whole => return Err("all fields are in the body or the path".to_owned()),
            BodyMapping::Field(number) if numbers().next() == Some(number) => {
                return Err("the field is in the body".to_owned());
            }
            BodyMapping::Field(_) | BodyMapping::Absent => {}
        }
        let is_it = |path: &[u32]| path.iter().copied().eq(numbers());
        if self.binding.variables().iter().any(|path| is_it(path.numbers())) {
            return Err("the field is in the path".to_owned());
        }
        Ok(())
    }

    /// Fails if the field or another one of its oneof has a value already.
    fn check_is_first(&mut self, fields: &[Field<'_>]) -> Result<(), String> {
        let mut path = Vec::with_capacity(fields.len());
        for field in fields {
            if let Some(oneof) = field.oneof()
                && let Some(first) = oneof.fields().next()
            {
                path.push(first.number());
                let chosen = *self.chosen.entry(path.clone()).or_insert(field.number());
                path.pop();
                if chosen != field.number() {
                    return Err(format!("another field of the oneof `{}` is set", oneof.name()));
                }
            }
            path.push(field.number());
        }
        if fields.last().is_some_and(|last| !last.is_repeated()) && !self.assigned.insert(path) {
            return Err("duplicate parameter of a field that is not repeated".to_owned());
        }
        Ok(())
    }
}

/// Returns the fields of `a.b.c` or `a.b[key]`, by schema or JSON names.
fn find<'s>(message: MessageType<'s>, name: &str) -> Result<Target<'s>, String> {
    let (path, key) = match name.split_once('[') {
        None => (name, None),
        Some((path, key)) => {
            let key = key.strip_suffix(']').ok_or("expected a closing bracket at the end")?;
            (path, Some(key.to_owned()))
        }
    };
    let mut fields: Vec<Field<'s>> = Vec::new();
    let mut message = Some(message);
    for name in path.split('.') {
        let parents = match (message, fields.last()) {
            (Some(message), _) => message,
            (None, Some(field)) if field.is_repeated() => {
                return Err(format!("`{}` is repeated, so its messages cannot be addressed", field.name()));
            }
            (None, last) => {
                let last = last.map_or("", |field| field.name());
                return Err(format!("`{last}` is not a message and has no fields"));
            }
        };
        let field = parents.field_by_json_name(name);
        let field =
            field.ok_or_else(|| format!("{} has no field `{}`", parents.full_name(), excerpt(name)))?;
        message = field.message_type().filter(|_| !field.is_repeated());
        fields.push(field);
    }
    match (fields.last().is_some_and(|last| last.is_map()), &key) {
        (true, None) => Err("the field is a map; add the key in brackets after the name".to_owned()),
        (false, Some(_)) => Err("the field is not a map and has no keys".to_owned()),
        (true, Some(_)) | (false, None) => Ok(Target { fields, key }),
    }
}

/// Appends an entry to the map that is the last of `fields`.
fn put_entry(
    fields: &[Field<'_>],
    key: &str,
    value: &str,
    options: &ParseOptions,
    wire: &mut Vec<u8>,
) -> Result<(), String> {
    let Some((key_field, value_field)) = fields.last().and_then(|map| map.map_entry()) else { return Ok(()) };
    let mut entry = Vec::with_capacity(key.len() + value.len() + 8);
    json::parse_text(key_field, key, options, &mut entry)
        .map_err(|error| format!("invalid key: {}", problem(error)))?;
    json::parse_text(value_field, value, options, &mut entry).map_err(problem)?;
    nested::put_nested(fields, entry.len(), wire, |wire| wire.extend_from_slice(&entry));
    Ok(())
}
