//! Output formats for message values: JSON and MessagePack.

use crate::schema::{Key, Kind};

/// Error for text that is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotText;

/// A position in the output: its length and the number of open maps and lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) len: usize,
    pub(crate) depth: usize,
}

/// Receives the values of a message in order.
pub(crate) trait Sink {
    /// An open map or list, held by the caller.
    type OpenContainer;

    fn begin_map(&mut self) -> Self::OpenContainer;
    /// Writes a key, before each value of a map.
    fn name(&mut self, open: &mut Self::OpenContainer, name: &Key);
    fn text_key(&mut self, open: &mut Self::OpenContainer, key: &[u8]) -> Result<(), NotText>;
    fn int_key(&mut self, open: &mut Self::OpenContainer, key: i64);
    fn uint_key(&mut self, open: &mut Self::OpenContainer, key: u64);
    fn bool_key(&mut self, open: &mut Self::OpenContainer, key: bool);
    fn end_map(&mut self, open: Self::OpenContainer);

    fn begin_list(&mut self) -> Self::OpenContainer;
    /// Starts an element, before each value of a list.
    fn element(&mut self, open: &mut Self::OpenContainer);
    fn end_list(&mut self, open: Self::OpenContainer);

    fn null(&mut self);
    fn bool(&mut self, value: bool);
    fn int32(&mut self, value: i32);
    fn uint32(&mut self, value: u32);
    fn int64(&mut self, value: i64);
    fn uint64(&mut self, value: u64);
    fn float(&mut self, value: f32);
    fn double(&mut self, value: f64);
    fn text(&mut self, value: &[u8]) -> Result<(), NotText>;
    fn bytes(&mut self, value: &[u8]);
    /// Returns false if it is out of range.
    fn timestamp(&mut self, seconds: i64, nanos: i32) -> bool;

    /// Writes a number of any kind, given in slot form.
    #[inline(always)]
    fn number(&mut self, kind: Kind, word: u64) {
        match kind {
            Kind::Double => self.double(f64::from_bits(word)),
            Kind::Float => self.float(f32::from_bits(word as u32)),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 | Kind::Enum => self.int32(word as i32),
            Kind::Uint32 | Kind::Fixed32 => self.uint32(word as u32),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => self.int64(word as i64),
            Kind::Uint64 | Kind::Fixed64 => self.uint64(word),
            Kind::Bool => self.bool(word != 0),
            // Unreachable: these are not numbers.
            Kind::String | Kind::Bytes | Kind::Message | Kind::Group => self.null(),
        }
    }

    /// Writes several numbers of one kind, at least one, as elements of a list.
    fn numbers(&mut self, open: &mut Self::OpenContainer, kind: Kind, words: &[u64]);

    /// Writes further elements of a list from `wire`, which starts with their records. Takes records with this tag
    /// while they are short text that needs no escaping, and while the output is not much longer than `len_max`.
    /// Returns the number of bytes consumed, which may be 0.
    fn plain_strings(
        &mut self,
        _open: &mut Self::OpenContainer,
        _tag: u8,
        _wire: &[u8],
        _len_max: usize,
    ) -> usize {
        0
    }

    /// Returns a position for [`Sink::rewind`].
    fn mark(&self) -> Mark;
    /// Removes all output after `mark`.
    fn rewind(&mut self, mark: Mark);
}
