//! Access to descriptors, which are messages of `google/protobuf/descriptor.proto`.

use thalweg_protobuf::{MessageRef, Value};

/// The kinds of declarations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Declared {
    File,
    Message,
    Enum,
    Service,
    Method,
    Extension,
}

/// A declaration and its location.
#[derive(Clone, Debug)]
pub(super) struct Found<'a> {
    pub(super) declared: Declared,
    pub(super) descriptor: MessageRef<'a>,
    /// Full name of the enclosing scope.
    pub(super) scope: String,
    /// Field numbers and indexes, as in `SourceCodeInfo`.
    pub(super) path: Vec<i32>,
}

impl Declared {
    /// Returns the fields that contain nested declarations, with their numbers.
    pub(super) fn parts(self) -> &'static [(&'static str, i32, Declared)] {
        match self {
            Self::File => &[
                ("message_type", 4, Self::Message),
                ("enum_type", 5, Self::Enum),
                ("service", 6, Self::Service),
                ("extension", 7, Self::Extension),
            ],
            Self::Message => &[
                ("nested_type", 3, Self::Message),
                ("enum_type", 4, Self::Enum),
                ("extension", 6, Self::Extension),
            ],
            Self::Service => &[("method", 2, Self::Method)],
            _ => &[],
        }
    }
}

/// Finds `name` among the declarations nested in a descriptor.
pub(super) fn find<'a>(
    within: MessageRef<'a>,
    declared: Declared,
    scope: &str,
    name: &str,
    path: &[i32],
) -> Option<Found<'a>> {
    let (first, rest) = match name.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (name, None),
    };
    for &(field, number, part) in declared.parts() {
        for (index, descriptor) in (0..).zip(list(within, field)) {
            if text(descriptor, "name") != first {
                continue;
            }
            let path = [path, &[number, index]].concat();
            match rest {
                None => return Some(Found { declared: part, descriptor, scope: scope.to_owned(), path }),
                Some(rest) => {
                    if let Some(found) = find(descriptor, part, &joined(scope, first), rest, &path) {
                        return Some(found);
                    }
                }
            }
        }
    }
    None
}

pub(super) fn joined(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") }
}

pub(super) fn text<'a>(message: MessageRef<'a>, field: &str) -> &'a str {
    message.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(message: MessageRef<'_>, field: &str) -> bool {
    message.get(field).and_then(Value::as_bool).unwrap_or_default()
}

/// Returns the value of a number or an enum.
pub(super) fn number(message: MessageRef<'_>, field: &str) -> i32 {
    match message.get(field) {
        Some(Value::I32(number) | Value::Enum(number)) => number,
        _ => 0,
    }
}

pub(super) fn list<'a>(
    message: MessageRef<'a>,
    field: &str,
) -> impl Iterator<Item = MessageRef<'a>> + use<'a> {
    let list = message.get(field).and_then(Value::as_list);
    list.into_iter().flat_map(|list| list.iter()).filter_map(Value::as_message)
}

pub(super) fn texts<'a>(message: MessageRef<'a>, field: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let list = message.get(field).and_then(Value::as_list);
    list.into_iter().flat_map(|list| list.iter()).filter_map(Value::as_str)
}

pub(super) fn numbers(message: MessageRef<'_>, field: &str) -> Vec<i32> {
    let list = message.get(field).and_then(Value::as_list);
    let values = list.into_iter().flat_map(|list| list.iter());
    values.filter_map(|value| if let Value::I32(number) = value { Some(number) } else { None }).collect()
}

/// Returns a message field, if it is set.
pub(super) fn message<'a>(of: MessageRef<'a>, field: &str) -> Option<MessageRef<'a>> {
    of.has(field).then(|| of.get(field)?.as_message()).flatten()
}
