//! Input formats for message values: JSON and MessagePack.

use std::borrow::Cow;

use super::fault::Fault;
use crate::schema::Key;

/// The kind of a value, before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Map,
    List,
    Text,
    Bytes,
    Number,
    Bool,
    Null,
    Time,
}

impl Shape {
    /// Describes the kind, for error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Map => "an object",
            Shape::List => "an array",
            Shape::Text => "a string",
            Shape::Bytes => "bytes",
            Shape::Number => "a number",
            Shape::Bool => "a boolean",
            Shape::Null => "null",
            Shape::Time => "a time",
        }
    }
}

#[inline]
pub(super) fn in_range<N: TryFrom<T>, T: Copy + std::fmt::Display>(number: T, at: usize) -> Result<N, Fault> {
    N::try_from(number).map_err(|_| Fault::new(at, format!("{number} is out of range")))
}

/// Provides values in order. Requesting a value of the wrong kind is an error.
pub(crate) trait Source<'t>: Clone {
    /// An open map or list, held by the caller.
    type Open;

    /// Returns the offset, for error messages.
    fn offset(&self) -> usize;
    /// Returns the kind of the next value.
    fn peek(&mut self) -> Result<Shape, Fault>;

    fn begin_map(&mut self) -> Result<Self::Open, Fault>;
    /// Returns whether another key follows; otherwise closes the map.
    fn next_key(&mut self, open: &mut Self::Open) -> Result<bool, Fault>;
    /// Skips the key if a cheap comparison shows that it is this one.
    fn take_name(&mut self, name: &Key) -> bool;
    fn key(&mut self) -> Result<Cow<'t, str>, Fault>;
    fn integer_key(&mut self) -> Result<i128, Fault>;
    fn bool_key(&mut self) -> Result<bool, Fault>;

    fn begin_list(&mut self) -> Result<Self::Open, Fault>;
    /// Returns whether another element follows; otherwise closes the list.
    fn next_element(&mut self, open: &mut Self::Open) -> Result<bool, Fault>;
    /// Called after a list element: appends the following ones to `wire` as records with `tag`, while they are texts
    /// that can be copied verbatim. Returns their number, which may be 0.
    fn plain_texts(&mut self, _tag: u32, _wire: &mut Vec<u8>) -> usize {
        0
    }

    fn null(&mut self) -> Result<(), Fault>;
    fn bool(&mut self) -> Result<bool, Fault>;
    /// Reads an integer in any notation.
    fn integer(&mut self) -> Result<i128, Fault>;
    /// Reads an integer in the range of the type.
    fn int64(&mut self) -> Result<i64, Fault> {
        let at = self.offset();
        in_range(self.integer()?, at)
    }
    /// Reads an integer in the range of the type.
    fn uint64(&mut self) -> Result<u64, Fault> {
        let at = self.offset();
        in_range(self.integer()?, at)
    }
    fn float(&mut self) -> Result<f32, Fault>;
    fn double(&mut self) -> Result<f64, Fault>;
    fn text(&mut self) -> Result<Cow<'t, str>, Fault>;
    /// Appends bytes to `wire`.
    fn bytes(&mut self, wire: &mut Vec<u8>) -> Result<(), Fault>;
    /// Reads seconds and nanoseconds, in the range of the type.
    fn timestamp(&mut self) -> Result<(i64, i32), Fault>;
    /// Skips a value nested at most `depth_max` deep.
    fn skip_value(&mut self, depth_max: usize) -> Result<(), Fault>;
}
