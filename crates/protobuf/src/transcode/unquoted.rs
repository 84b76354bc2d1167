//! A single value as unquoted text, as in a URL.

use std::borrow::Cow;

use super::parse_error::LocatedError;
use super::source::{Source, ValueKind};
use crate::printable::excerpt;
use crate::schema::Key;
use crate::text::number::{self, NumberProblem};
use crate::text::{base64, time};

/// A value that is a string in JSON, a number or a boolean.
#[derive(Clone)]
pub(crate) struct UnquotedValue<'t>(pub(crate) &'t str);

impl UnquotedValue<'_> {
    #[cold]
    fn invalid(&self, what: &str) -> LocatedError {
        LocatedError::new(0, format!("`{}` is {what}", excerpt(self.0)))
    }

    fn number<N>(&self, read: impl FnOnce(&str) -> Result<N, NumberProblem>) -> Result<N, LocatedError> {
        read(self.0).map_err(|problem| self.invalid(problem.words()))
    }

    fn not_a_container<T>(&self) -> Result<T, LocatedError> {
        Err(self.invalid("a single value, where several are expected"))
    }
}

impl<'t> Source<'t> for UnquotedValue<'t> {
    type OpenContainer = ();

    fn offset(&self) -> usize {
        0
    }

    fn peek(&mut self) -> Result<ValueKind, LocatedError> {
        Ok(if number::integer_in_string(self.0).is_ok() { ValueKind::Number } else { ValueKind::Text })
    }

    fn begin_map(&mut self) -> Result<(), LocatedError> {
        self.not_a_container()
    }

    fn next_key(&mut self, (): &mut ()) -> Result<bool, LocatedError> {
        self.not_a_container()
    }

    fn take_name(&mut self, _: &Key) -> bool {
        false
    }

    fn key(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        self.not_a_container()
    }

    fn integer_key(&mut self) -> Result<i128, LocatedError> {
        self.not_a_container()
    }

    fn bool_key(&mut self) -> Result<bool, LocatedError> {
        self.not_a_container()
    }

    fn begin_list(&mut self) -> Result<(), LocatedError> {
        self.not_a_container()
    }

    fn next_element(&mut self, (): &mut ()) -> Result<bool, LocatedError> {
        self.not_a_container()
    }

    fn null(&mut self) -> Result<(), LocatedError> {
        Err(self.invalid("not null"))
    }

    fn bool(&mut self) -> Result<bool, LocatedError> {
        match self.0 {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.invalid("neither true nor false")),
        }
    }

    fn integer(&mut self) -> Result<i128, LocatedError> {
        self.number(number::integer_in_string)
    }

    fn float(&mut self) -> Result<f32, LocatedError> {
        self.number(number::float_in_string)
    }

    fn double(&mut self) -> Result<f64, LocatedError> {
        self.number(number::double_in_string)
    }

    fn text(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        Ok(Cow::Borrowed(self.0))
    }

    fn bytes(&mut self, wire: &mut Vec<u8>) -> Result<(), LocatedError> {
        if base64::decode(self.0, wire) { Ok(()) } else { Err(self.invalid("not base64")) }
    }

    fn timestamp(&mut self) -> Result<(i64, i32), LocatedError> {
        time::parse_timestamp(self.0)
            .ok_or_else(|| self.invalid("not a timestamp such as 2024-02-29T12:00:00.5Z"))
    }

    fn skip_value(&mut self, _: usize) -> Result<(), LocatedError> {
        Ok(())
    }
}
