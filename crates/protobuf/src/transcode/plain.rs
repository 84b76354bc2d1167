//! A single value as unquoted text, as in a URL.

use std::borrow::Cow;

use super::fault::Fault;
use super::source::{Shape, Source};
use crate::printable::excerpt;
use crate::schema::Key;
use crate::text::number::{self, NumberProblem};
use crate::text::{base64, time};

/// A value that is a string in JSON, a number or a boolean.
#[derive(Clone)]
pub(crate) struct Plain<'t>(pub(crate) &'t str);

impl Plain<'_> {
    #[cold]
    fn is_not(&self, what: &str) -> Fault {
        Fault::new(0, format!("`{}` is {what}", excerpt(self.0)))
    }

    fn number<N>(&self, read: impl FnOnce(&str) -> Result<N, NumberProblem>) -> Result<N, Fault> {
        read(self.0).map_err(|problem| self.is_not(problem.words()))
    }

    fn no_map_or_list<T>(&self) -> Result<T, Fault> {
        Err(self.is_not("a single value, where several are expected"))
    }
}

impl<'t> Source<'t> for Plain<'t> {
    type Open = ();

    fn offset(&self) -> usize {
        0
    }

    fn peek(&mut self) -> Result<Shape, Fault> {
        Ok(if number::integer_in_string(self.0).is_ok() { Shape::Number } else { Shape::Text })
    }

    fn begin_map(&mut self) -> Result<(), Fault> {
        self.no_map_or_list()
    }

    fn next_key(&mut self, (): &mut ()) -> Result<bool, Fault> {
        self.no_map_or_list()
    }

    fn take_name(&mut self, _: &Key) -> bool {
        false
    }

    fn key(&mut self) -> Result<Cow<'t, str>, Fault> {
        self.no_map_or_list()
    }

    fn integer_key(&mut self) -> Result<i128, Fault> {
        self.no_map_or_list()
    }

    fn bool_key(&mut self) -> Result<bool, Fault> {
        self.no_map_or_list()
    }

    fn begin_list(&mut self) -> Result<(), Fault> {
        self.no_map_or_list()
    }

    fn next_element(&mut self, (): &mut ()) -> Result<bool, Fault> {
        self.no_map_or_list()
    }

    fn null(&mut self) -> Result<(), Fault> {
        Err(self.is_not("not null"))
    }

    fn bool(&mut self) -> Result<bool, Fault> {
        match self.0 {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.is_not("neither true nor false")),
        }
    }

    fn integer(&mut self) -> Result<i128, Fault> {
        self.number(number::integer_in_string)
    }

    fn float(&mut self) -> Result<f32, Fault> {
        self.number(number::float_in_string)
    }

    fn double(&mut self) -> Result<f64, Fault> {
        self.number(number::double_in_string)
    }

    fn text(&mut self) -> Result<Cow<'t, str>, Fault> {
        Ok(Cow::Borrowed(self.0))
    }

    fn bytes(&mut self, wire: &mut Vec<u8>) -> Result<(), Fault> {
        if base64::decode(self.0, wire) { Ok(()) } else { Err(self.is_not("not base64")) }
    }

    fn timestamp(&mut self) -> Result<(i64, i32), Fault> {
        time::parse_timestamp(self.0).ok_or_else(|| self.is_not("no time such as 2024-02-29T12:00:00.5Z"))
    }

    fn skip_value(&mut self, _: usize) -> Result<(), Fault> {
        Ok(())
    }
}
