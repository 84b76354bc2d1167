//! JSON as an input format.

use std::borrow::Cow;

use super::read::{JsonKind, Reader};
use crate::printable::excerpt;
use crate::schema::Key;
use crate::text::number::{self, NumberProblem};
use crate::text::{base64, time};
use crate::transcode::parse_error::LocatedError;
use crate::transcode::{Source, ValueKind};

/// An open map or list.
pub(crate) struct OpenContainer {
    is_first: bool,
}

impl Reader<'_> {
    /// Skips the opening bracket of a value that must be `kind`.
    #[inline]
    fn begin(&mut self, kind: JsonKind) -> Result<OpenContainer, LocatedError> {
        self.expect(kind)?;
        self.open();
        Ok(OpenContainer { is_first: true })
    }

    #[inline]
    fn expect(&mut self, kind: JsonKind) -> Result<(), LocatedError> {
        let found = self.peek()?;
        if found == kind { Ok(()) } else { Err(self.mismatch(kind.name(), found)) }
    }

    #[cold]
    fn mismatch(&self, expected: &str, found: JsonKind) -> LocatedError {
        LocatedError::new(self.offset(), format!("expected {expected}, found {}", found.name()))
    }

    #[cold]
    fn long_integer<N: TryFrom<i128>>(&mut self) -> Result<N, LocatedError> {
        Reader::peek(self)?;
        let at = self.offset();
        let number = Source::integer(self)?;
        N::try_from(number).map_err(|_| no_number(at, &number.to_string(), NumberProblem::Range))
    }

    /// Reads a number, quoted or not. The error for a quoted number includes its text.
    #[inline]
    fn numeric<N>(
        &mut self,
        plain: impl FnOnce(&str) -> Result<N, NumberProblem>,
        quoted: impl FnOnce(&str) -> Result<N, NumberProblem>,
    ) -> Result<N, LocatedError> {
        let found = self.peek()?;
        let at = self.offset();
        match found {
            JsonKind::Number => {
                let text = self.number()?;
                plain(text).map_err(|problem| no_number(at, text, problem))
            }
            JsonKind::String => {
                let text = self.string()?;
                quoted(&text).map_err(|problem| no_number(at, &text, problem))
            }
            _ => Err(self.mismatch("a number", found)),
        }
    }
}

#[cold]
fn no_number(at: usize, text: &str, problem: NumberProblem) -> LocatedError {
    LocatedError::new(at, format!("`{}` is {}", excerpt(text), problem.words()))
}

impl<'t> Source<'t> for Reader<'t> {
    type OpenContainer = OpenContainer;

    fn offset(&self) -> usize {
        Reader::offset(self)
    }

    #[inline]
    fn peek(&mut self) -> Result<ValueKind, LocatedError> {
        Ok(match Reader::peek(self)? {
            JsonKind::Object => ValueKind::Map,
            JsonKind::Array => ValueKind::List,
            JsonKind::String => ValueKind::Text,
            JsonKind::Number => ValueKind::Number,
            JsonKind::True | JsonKind::False => ValueKind::Bool,
            JsonKind::Null => ValueKind::Null,
        })
    }

    #[inline]
    fn begin_map(&mut self) -> Result<OpenContainer, LocatedError> {
        self.begin(JsonKind::Object)
    }

    #[inline]
    fn next_key(&mut self, open: &mut OpenContainer) -> Result<bool, LocatedError> {
        let is_first = std::mem::replace(&mut open.is_first, false);
        self.next_member(is_first)
    }

    #[inline]
    fn take_name(&mut self, name: &Key) -> bool {
        Reader::take_name(self, &name.member()[1..])
    }

    #[inline]
    fn key(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        self.name()
    }

    fn integer_key(&mut self) -> Result<i128, LocatedError> {
        let at = Reader::offset(self);
        let text = self.name()?;
        number::integer_in_string(&text).map_err(|problem| no_number(at, &text, problem))
    }

    fn bool_key(&mut self) -> Result<bool, LocatedError> {
        let at = Reader::offset(self);
        match &*self.name()? {
            "true" => Ok(true),
            "false" => Ok(false),
            text => Err(LocatedError::new(at, format!("`{}` is neither true nor false", excerpt(text)))),
        }
    }

    #[inline]
    fn begin_list(&mut self) -> Result<OpenContainer, LocatedError> {
        self.begin(JsonKind::Array)
    }

    #[inline]
    fn next_element(&mut self, open: &mut OpenContainer) -> Result<bool, LocatedError> {
        let is_first = std::mem::replace(&mut open.is_first, false);
        Reader::next_element(self, is_first)
    }

    #[inline]
    fn plain_strings(&mut self, tag: u32, wire: &mut Vec<u8>) -> usize {
        Reader::plain_strings(self, tag, wire)
    }

    fn null(&mut self) -> Result<(), LocatedError> {
        self.expect(JsonKind::Null)?;
        self.word("null")
    }

    #[inline]
    fn bool(&mut self) -> Result<bool, LocatedError> {
        match Reader::peek(self)? {
            JsonKind::True => self.word("true").map(|()| true),
            JsonKind::False => self.word("false").map(|()| false),
            found => Err(self.mismatch("true or false", found)),
        }
    }

    fn integer(&mut self) -> Result<i128, LocatedError> {
        self.numeric(number::integer, number::integer_in_string)
    }

    #[inline]
    fn int64(&mut self) -> Result<i64, LocatedError> {
        match self.short_integer() {
            // The magnitude has at most 18 digits.
            Some((is_negative, magnitude)) => {
                Ok(if is_negative { -(magnitude as i64) } else { magnitude as i64 })
            }
            None => self.long_integer(),
        }
    }

    #[inline]
    fn uint64(&mut self) -> Result<u64, LocatedError> {
        let before = self.clone();
        if let Some((false, magnitude)) = self.short_integer() {
            return Ok(magnitude);
        }
        *self = before;
        self.long_integer()
    }

    #[inline]
    fn float(&mut self) -> Result<f32, LocatedError> {
        let before = self.clone();
        if let Some(float) = self.short_double().and_then(number::to_float) {
            return Ok(float);
        }
        *self = before;
        self.numeric(number::float, number::float_in_string)
    }

    #[inline]
    fn double(&mut self) -> Result<f64, LocatedError> {
        if let Some(double) = self.short_double() {
            return Ok(double);
        }
        self.numeric(number::double, number::double_in_string)
    }

    #[inline]
    fn text(&mut self) -> Result<Cow<'t, str>, LocatedError> {
        self.expect(JsonKind::String)?;
        self.string()
    }

    fn bytes(&mut self, wire: &mut Vec<u8>) -> Result<(), LocatedError> {
        self.expect(JsonKind::String)?;
        let at = Reader::offset(self);
        let text = self.string()?;
        if base64::decode(&text, wire) {
            return Ok(());
        }
        Err(LocatedError::new(at, format!("`{}` is not base64", excerpt(&text))))
    }

    fn timestamp(&mut self) -> Result<(i64, i32), LocatedError> {
        self.expect(JsonKind::String)?;
        let at = Reader::offset(self);
        let text = self.string()?;
        let problem = || format!("`{}` is not a timestamp such as 2024-02-29T12:00:00.5Z", excerpt(&text));
        time::parse_timestamp(&text).ok_or_else(|| LocatedError::new(at, problem()))
    }

    fn skip_value(&mut self, depth_max: usize) -> Result<(), LocatedError> {
        Reader::skip_value(self, depth_max)
    }
}
