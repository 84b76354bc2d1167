//! Records of descriptors and of their options, which a schema has checked or keeps as they are.

use thalweg_protobuf::wire::{Reader, WireType};

/// Groups in one another, in fields that are not ours.
const SKIP_DEPTH_MAX: usize = 32;

/// The records of a message, in their order: number and value. They end where one cannot be read.
pub(crate) struct Records<'a>(Reader<'a>);

/// The value of one record. Those of other kinds are stepped over: no descriptor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Varint(u64),
    Len(&'a [u8]),
}

impl<'a> Records<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Records(Reader::new(bytes))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u32, Record<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let tag = self.0.tag().ok()?;
            let record = match tag.wire_type {
                WireType::Varint => Record::Varint(self.0.varint().ok()?),
                WireType::Len => Record::Len(self.0.len_prefixed().ok()?),
                _ => {
                    self.0.skip(tag, SKIP_DEPTH_MAX).ok()?;
                    continue;
                }
            };
            return Some((tag.number, record));
        }
        None
    }
}

impl<'a> Record<'a> {
    /// Text; what is not UTF-8 is none.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Record::Len(bytes) => std::str::from_utf8(bytes).ok(),
            Record::Varint(_) => None,
        }
    }

    /// The numbers of a repeated field: one of them, or a packed row.
    pub(crate) fn numbers(self) -> Vec<u64> {
        match self {
            Record::Varint(number) => vec![number],
            Record::Len(row) => {
                let mut reader = Reader::new(row);
                std::iter::from_fn(|| if reader.is_empty() { None } else { reader.varint().ok() }).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Record, Records};

    #[test]
    fn records_of_both_kinds_are_given_and_others_stepped_over() {
        // 1: 150, 2: fixed32, 3: "ab", 4: a group, 5: packed 1 2.
        let wire = b"\x08\x96\x01\x15\0\0\0\0\x1a\x02ab\x23\x08\x01\x24\x2a\x02\x01\x02";
        let records: Vec<_> = Records::of(wire).collect();
        assert_eq!(
            records,
            [(1, Record::Varint(150)), (3, Record::Len(b"ab")), (5, Record::Len(b"\x01\x02"))]
        );
        assert_eq!(records[1].1.text(), Some("ab"));
        assert_eq!(records[2].1.numbers(), [1, 2]);
        assert_eq!(records[0].1.numbers(), [150]);
        assert_eq!(Records::of(b"\x08\x01\x1a\x05a").collect::<Vec<_>>(), [(1, Record::Varint(1))]);
    }
}
