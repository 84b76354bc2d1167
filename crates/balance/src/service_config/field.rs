//! JSON values with their paths, read as ProtoJSON.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};
use thalweg_core::Code;

use super::duration::parse_duration;
use super::error::ServiceConfigError;
use super::known::KnownNames;
use crate::code_set::CodeSet;

/// A value and its path. A missing field has the value `null`, which is equivalent in ProtoJSON.
pub(super) struct Field<'a> {
    value: &'a Value,
    parent: Option<&'a Field<'a>>,
    step: Step<'a>,
    /// Where the names of known members are noted, if they are.
    known: Option<&'a KnownNames>,
}

/// Last step of a path.
#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Member(&'a str),
    Item(usize),
}

/// Result of reading a field.
pub(super) type Read<T> = Result<T, ServiceConfigError>;

/// Maximum characters of an invalid value that are shown.
const FOUND_LEN_MAX: usize = 80;

impl<'a> Field<'a> {
    /// Creates the field of a whole text.
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, parent: None, step: Step::Root, known: None }
    }

    /// Notes the names of known members from now on.
    pub(super) fn noting(self, known: &'a KnownNames) -> Self {
        Self { known: Some(known), ..self }
    }

    /// Returns a member of an object.
    pub(super) fn member<'s>(&'s self, name: &'s str, value: &'s Value) -> Field<'s> {
        Field { value, parent: Some(self), step: Step::Member(name), known: self.known }
    }

    /// Returns an item of a list.
    pub(super) fn item<'s>(&'s self, at: usize, value: &'s Value) -> Field<'s> {
        Field { value, parent: Some(self), step: Step::Item(at), known: self.known }
    }

    /// Reads a member of an object; it is null if it is missing.
    pub(super) fn required<'s, T>(
        &'s self,
        name: &'s str,
        read: impl FnOnce(&Field<'s>) -> Read<T>,
    ) -> Read<T> {
        let value = self.object()?.get(name).unwrap_or(&Value::Null);
        if let Some(known) = self.known {
            known.note(self.value, name);
        }
        read(&self.member(name, value))
    }

    /// Reads a member of an object; `None` if it is missing or null.
    pub(super) fn optional<'s, T>(
        &'s self,
        name: &'s str,
        read: impl FnOnce(&Field<'s>) -> Read<T>,
    ) -> Read<Option<T>> {
        self.required(name, |field| if field.value.is_null() { Ok(None) } else { read(field).map(Some) })
    }

    /// Reads a member of an object, and passes it to a setter of `config` unless it is missing or null.
    pub(super) fn set<'s, C, T>(
        &'s self,
        config: C,
        name: &'s str,
        read: impl FnOnce(&Field<'s>) -> Read<T>,
        setter: impl FnOnce(C, T) -> C,
    ) -> Read<C> {
        Ok(match self.optional(name, read)? {
            Some(value) => setter(config, value),
            None => config,
        })
    }

    /// Returns another value at the same path.
    pub(super) fn with_value<'b>(&self, value: &'b Value) -> Field<'b>
    where
        'a: 'b,
    {
        Field { value, parent: self.parent, step: self.step, known: None }
    }

    /// Reads the items of a list one by one.
    pub(super) fn items<'s, T>(&'s self, mut read: impl FnMut(&Field<'s>) -> Read<T>) -> Read<Vec<T>> {
        let Value::Array(items) = self.value else { return Err(self.wrong("a list")) };
        items.iter().enumerate().map(|(at, value)| read(&self.item(at, value))).collect()
    }

    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    pub(super) fn object(&self) -> Read<&'a Map<String, Value>> {
        self.value.as_object().ok_or_else(|| self.wrong("an object"))
    }

    /// Checks that the value is an object. None of its members has a meaning.
    pub(super) fn empty_object(&self) -> Read<()> {
        self.object()?;
        if let Some(known) = self.known {
            known.note_object(self.value);
        }
        Ok(())
    }

    pub(super) fn bool(&self) -> Read<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn string(&self) -> Read<String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.wrong("a string"))
    }

    /// Reads a whole number within a range.
    pub(super) fn integer(&self, range: RangeInclusive<u32>) -> Read<u32> {
        let number = self.number().filter(|number| number.fract() == 0.0);
        let number = number.filter(|number| (0.0..=f64::from(u32::MAX)).contains(number));
        let number = number.map(|number| number as u32).filter(|number| range.contains(number));
        number.ok_or_else(|| self.wrong(format!("a whole number from {} to {}", range.start(), range.end())))
    }

    /// Reads a number above zero.
    pub(super) fn positive(&self) -> Read<f64> {
        self.number().filter(|&number| number > 0.0).ok_or_else(|| self.wrong("a number greater than 0"))
    }

    /// Reads a number that is zero or more.
    pub(super) fn non_negative(&self) -> Read<f64> {
        self.number().filter(|&number| number >= 0.0).ok_or_else(|| self.wrong("a number, 0 or more"))
    }

    pub(super) fn duration(&self) -> Read<Duration> {
        let duration = self.value.as_str().and_then(parse_duration);
        duration.ok_or_else(|| self.wrong(r#"a duration such as "1.5s""#))
    }

    /// Reads a duration above zero.
    pub(super) fn positive_duration(&self) -> Read<Duration> {
        let duration = self.value.as_str().and_then(parse_duration);
        let duration = duration.filter(|duration| !duration.is_zero());
        duration.ok_or_else(|| self.wrong(r#"a positive duration such as "1.5s""#))
    }

    /// Reads a list of status codes.
    pub(super) fn codes(&self) -> Read<CodeSet> {
        Ok(self.items(read_code)?.into_iter().collect())
    }

    /// Returns a finite number. ProtoJSON allows strings for all numbers.
    fn number(&self) -> Option<f64> {
        let number = match self.value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        number.filter(|number| number.is_finite())
    }

    /// Creates the error for a value that is not `expected`.
    pub(super) fn wrong(&self, expected: impl Into<Cow<'static, str>>) -> ServiceConfigError {
        match self.value {
            Value::Null => self.wrong_for(expected, "nothing"),
            value => self.wrong_for(expected, &value.to_string()),
        }
    }

    /// Creates the error for a part of a value, `found`, that is not `expected`.
    pub(super) fn wrong_for(
        &self,
        expected: impl Into<Cow<'static, str>>,
        found: &str,
    ) -> ServiceConfigError {
        ServiceConfigError::Field {
            field: self.to_string(),
            expected: expected.into(),
            found: shorten(found),
        }
    }
}

/// Reads a status code: its name in any case, or its number (gRFC A6).
fn read_code(code: &Field<'_>) -> Read<Code> {
    let read = match code.value {
        Value::String(name) => Code::ALL.into_iter().find(|code| code.name().eq_ignore_ascii_case(name)),
        Value::Number(_) => code.integer(0..=16).ok().map(Code::from_number),
        _ => None,
    };
    read.ok_or_else(|| code.wrong("the name or number of a status code"))
}

/// Shortens a value for an error text.
pub(super) fn shorten(text: &str) -> String {
    let mut shortened: String = text.chars().take(FOUND_LEN_MAX).collect();
    if shortened.len() < text.len() {
        shortened.push('…');
    }
    shortened
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = self.parent.filter(|parent| parent.parent.is_some());
        if let Some(parent) = parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) if parent.is_some() => write!(f, ".{name}"),
            Step::Member(name) => f.write_str(name),
            Step::Item(at) => write!(f, "[{at}]"),
        }
    }
}
