//! Where the values of a message come from: JSON or MessagePack.

use std::borrow::Cow;

use super::fault::Fault;
use crate::schema::Key;

/// What a value is, before it is read.
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
    /// For messages.
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

/// Gives values in their order. A value of another kind than the one that is asked for is an error.
pub(crate) trait Source<'t>: Clone {
    /// A map or list that is open: its owner keeps it.
    type Open;

    /// For messages.
    fn offset(&self) -> usize;
    /// What the next value is.
    fn peek(&mut self) -> Result<Shape, Fault>;

    fn begin_map(&mut self) -> Result<Self::Open, Fault>;
    /// Whether another key follows; the map is closed if not.
    fn next_key(&mut self, open: &mut Self::Open) -> Result<bool, Fault>;
    /// Steps over the key if it is this one, and can be seen to be at a glance.
    fn take_name(&mut self, name: &Key) -> bool;
    fn key(&mut self) -> Result<Cow<'t, str>, Fault>;
    fn integer_key(&mut self) -> Result<i128, Fault>;
    fn bool_key(&mut self) -> Result<bool, Fault>;

    fn begin_list(&mut self) -> Result<Self::Open, Fault>;
    /// Whether another element follows; the list is closed if not.
    fn next_element(&mut self, open: &mut Self::Open) -> Result<bool, Fault>;
    /// Behind an element of a list: appends those that follow to `wire`, each as a record behind `tag`, as long as they
    /// are texts that can be taken as they are. How many; none is an answer, too.
    fn plain_texts(&mut self, _tag: u32, _wire: &mut Vec<u8>) -> usize {
        0
    }

    fn null(&mut self) -> Result<(), Fault>;
    fn bool(&mut self) -> Result<bool, Fault>;
    /// A whole number, in whatever way it is written.
    fn integer(&mut self) -> Result<i128, Fault>;
    /// As `integer`, and in the range of the type.
    fn int64(&mut self) -> Result<i64, Fault> {
        let at = self.offset();
        in_range(self.integer()?, at)
    }
    /// As `integer`, and in the range of the type.
    fn uint64(&mut self) -> Result<u64, Fault> {
        let at = self.offset();
        in_range(self.integer()?, at)
    }
    fn float(&mut self) -> Result<f32, Fault>;
    fn double(&mut self) -> Result<f64, Fault>;
    fn text(&mut self) -> Result<Cow<'t, str>, Fault>;
    /// Appends bytes to `wire`.
    fn bytes(&mut self, wire: &mut Vec<u8>) -> Result<(), Fault>;
    /// Seconds and nanoseconds, in the range of the type.
    fn timestamp(&mut self) -> Result<(i64, i32), Fault>;
    /// Steps over a value that has at most so many in one another.
    fn skip_value(&mut self, depth_max: usize) -> Result<(), Fault>;
}
