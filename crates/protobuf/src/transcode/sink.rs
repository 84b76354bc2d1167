//! Where the values of a message go: JSON or MessagePack.

use crate::schema::{Key, Kind};

/// A value that the output has no form for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotText;

/// How much has been written, and how many maps and lists are open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) len: usize,
    pub(crate) depth: usize,
}

/// Takes the values of a message in their order.
pub(crate) trait Sink {
    /// A map or list that is open: its owner keeps it.
    type Open;

    fn begin_map(&mut self) -> Self::Open;
    /// Before each value of a map: its key.
    fn name(&mut self, open: &mut Self::Open, name: &Key);
    fn text_key(&mut self, open: &mut Self::Open, key: &[u8]) -> Result<(), NotText>;
    fn int_key(&mut self, open: &mut Self::Open, key: i64);
    fn uint_key(&mut self, open: &mut Self::Open, key: u64);
    fn bool_key(&mut self, open: &mut Self::Open, key: bool);
    fn end_map(&mut self, open: Self::Open);

    fn begin_list(&mut self) -> Self::Open;
    /// Before each value of a list.
    fn element(&mut self, open: &mut Self::Open);
    fn end_list(&mut self, open: Self::Open);

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
    /// False if it is out of range.
    fn timestamp(&mut self, seconds: i64, nanos: i32) -> bool;

    /// A number of any kind as 64 bits: as slots hold them.
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
            // They are no numbers, and never come here.
            Kind::String | Kind::Bytes | Kind::Message | Kind::Group => self.null(),
        }
    }

    /// Several of a kind, at least one, as elements of a list.
    fn numbers(&mut self, open: &mut Self::Open, kind: Kind, words: &[u64]);

    /// Further elements of a list, from the records of which `wire` is the beginning: those behind this tag, as long as
    /// they are short, text that can be written as it is, and the output is not much longer than `len_max`. How many
    /// bytes they were; none is an answer, too.
    fn plain_texts(&mut self, _open: &mut Self::Open, _tag: u8, _wire: &[u8], _len_max: usize) -> usize {
        0
    }

    /// Where to come back to.
    fn mark(&self) -> Mark;
    /// Takes back all that was written since.
    fn rewind(&mut self, mark: Mark);
}
