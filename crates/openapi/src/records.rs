//! Wire records of descriptors and their options, which a schema has validated or keeps encoded.

use thalweg_protobuf::wire::{Reader, WireError, WireType};

/// Maximum nesting depth of groups in unknown fields.
const SKIP_DEPTH_MAX: usize = 32;

/// Iterates over the records of a message: number and value. Stops after the first unreadable one.
pub(crate) struct Records<'a>(Reader<'a>);

/// The value of a record. Other wire types are skipped: no descriptor has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Varint(u64),
    Len(&'a [u8]),
}

impl<'a> Records<'a> {
    pub(crate) fn checked(bytes: &'a [u8]) -> Self {
        Records(Reader::new(bytes))
    }

    /// Iterates over the records before the first unreadable one.
    pub(crate) fn of(bytes: &'a [u8]) -> impl Iterator<Item = (u32, Record<'a>)> {
        Records::checked(bytes).map_while(Result::ok)
    }

    fn read(&mut self) -> Result<Option<(u32, Record<'a>)>, WireError> {
        while !self.0.is_empty() {
            let tag = self.0.tag()?;
            let record = match tag.wire_type {
                WireType::Varint => Record::Varint(self.0.varint()?),
                WireType::Len => Record::Len(self.0.len_prefixed()?),
                _ => {
                    self.0.skip(tag, SKIP_DEPTH_MAX)?;
                    continue;
                }
            };
            return Ok(Some((tag.number, record)));
        }
        Ok(None)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(u32, Record<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.read();
        if record.is_err() {
            self.0 = Reader::new(&[]);
        }
        record.transpose()
    }
}

impl<'a> Record<'a> {
    /// Returns the text, or `None` if it is not UTF-8.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Record::Len(bytes) => std::str::from_utf8(bytes).ok(),
            Record::Varint(_) => None,
        }
    }

    /// Returns the numbers of a repeated field: one number, or several packed ones.
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
    fn varint_and_len_records_are_read_and_others_skipped() {
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
        let broken = b"\x08\x01\x1a\x05a";
        assert_eq!(Records::of(broken).collect::<Vec<_>>(), [(1, Record::Varint(1))]);
        let checked: Vec<_> = Records::checked(broken).collect();
        assert!(matches!(checked[..], [Ok((1, Record::Varint(1))), Err(_)]), "{checked:?}");
    }
}
