//! Input formats for message values: JSON and MessagePack.

use std::borrow::Cow;

use super::parse_error::LocatedError;
use crate::schema::Key;

/// The kind of a value, before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Map,
    List,
    Text,
    Bytes,
    Number,
    Bool,
    Null,
    Time,
}

impl ValueKind {
    /// Describes the kind, for error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ValueKind::Map => "an object",
            ValueKind::List => "an array",
            ValueKind::Text => "a string",
            ValueKind::Bytes => "bytes",
            ValueKind::Number => "a number",
            ValueKind::Bool => "a boolean",
            ValueKind::Null => "null",
            ValueKind::Time => "a time",
        }
    }
}

#[inline]
pub(super) fn in_range<N: TryFrom<T>, T: Copy + std::fmt::Display>(
    number: T,
    at: usize,
) -> Result<N, LocatedError> {
    N::try_from(number).map_err(|_| LocatedError::new(at, format!("{number} is out of range")))
}

/// Provides values in order. Requesting a value of the wrong kind is an error.
pub(crate) trait Source<'t>: Clone {
    /// An open map or list, held by the caller.
    type OpenContainer;

    /// Returns the offset, for error messages.
    fn offset(&self) -> usize;
    /// Returns the kind of the next value.
    fn peek(&mut self) -> Result<ValueKind, LocatedError>;

    fn begin_map(&mut self) -> Result<Self::OpenContainer, LocatedError>;
    /// Returns whether another key follows; otherwise closes the map.
    fn next_key(&mut self, open: &mut Self::OpenContainer) -> Result<bool, LocatedError>;
    /// Skips the key if a cheap comparison shows that it is this one.
    fn take_name(&mut self, name: &Key) -> bool;
    fn key(&mut self) -> Result<Cow<'t, str>, LocatedError>;
    fn integer_key(&mut self) -> Result<i128, LocatedError>;
    fn bool_key(&mut self) -> Result<bool, LocatedError>;

    fn begin_list(&mut self) -> Result<Self::OpenContainer, LocatedError>;
    /// Returns whether another element follows; otherwise closes the list.
    fn next_element(&mut self, open: &mut Self::OpenContainer) -> Result<bool, LocatedError>;
    /// Called after a list element: appends the following ones to `wire` as records with `tag`, while they are texts
    /// that can be copied verbatim. Returns their number, which may be 0.
    fn plain_strings(&mut self, _tag: u32, _wire: &mut Vec<u8>) -> usize {
        0
    }

    fn null(&mut self) -> Result<(), LocatedError>;
    fn bool(&mut self) -> Result<bool, LocatedError>;
    /// Reads an integer in any notation.
    fn integer(&mut self) -> Result<i128, LocatedError>;
    /// Reads an integer in the range of the type.
    fn int64(&mut self) -> Result<i64, LocatedError> {
        let at = self.offset();
        in_range(self.integer()?, at)
    }
    /// Reads an integer in the range of the type.
    fn uint64(&mut self) -> Result<u64, LocatedError> {
        let at = self.offset();
        in_range(self.integer()?, at)
    }
    fn float(&mut self) -> Result<f32, LocatedError>;
    fn double(&mut self) -> Result<f64, LocatedError>;
    fn text(&mut self) -> Result<Cow<'t, str>, LocatedError>;
    /// Appends bytes to `wire`.
    fn bytes(&mut self, wire: &mut Vec<u8>) -> Result<(), LocatedError>;
    /// Reads seconds and nanoseconds, in the range of the type.
    fn timestamp(&mut self) -> Result<(i64, i32), LocatedError>;
    /// Skips a value nested at most `depth_max` deep.
    fn skip_value(&mut self, depth_max: usize) -> Result<(), LocatedError>;
}
