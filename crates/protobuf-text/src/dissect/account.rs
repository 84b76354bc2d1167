//! Byte statistics of a message: bytes per field, split into tags, lengths and payload.

use std::collections::HashMap;

use super::known;
use super::record::{Message, Record, Value};

/// Bytes of all occurrences of a field at one position in the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldBytes {
    /// Field numbers from the root to this field.
    pub path: Vec<u32>,
    /// Name of the field, if a schema declares it.
    pub name: Option<String>,
    /// Number of occurrences.
    pub count: usize,
    /// Bytes of its tags, including end tags of groups.
    pub tag: usize,
    /// Bytes of its lengths.
    pub length: usize,
    /// Bytes of its values; 0 for messages and groups, whose bytes belong to their fields.
    pub payload: usize,
    /// Bytes from its tags to its ends, including nested fields.
    pub total: usize,
}

/// Bytes by field of one or several messages.
#[derive(Clone, Debug, Default)]
pub struct ByteAccount {
    fields: Vec<FieldNode>,
    /// Index in `fields`, by parent field and number.
    positions: HashMap<(Option<usize>, u32), usize>,
    /// Bytes that do not belong to a record.
    rest: usize,
}

#[derive(Clone, Debug)]
struct FieldNode {
    bytes: FieldBytes,
    fields: Vec<usize>,
}

impl ByteAccount {
    /// Adds the bytes of `message`.
    pub fn add(&mut self, input: &[u8], message: &Message) {
        self.add_to(None, input, message);
    }

    /// Returns the fields in order of appearance, each before those nested in it.
    pub fn fields(&self) -> Vec<&FieldBytes> {
        let mut fields = Vec::with_capacity(self.fields.len());
        let outermost = (0..self.fields.len()).filter(|at| self.fields[*at].bytes.path.len() == 1);
        let mut open: Vec<usize> = outermost.rev().collect();
        while let Some(at) = open.pop() {
            fields.push(&self.fields[at].bytes);
            open.extend(self.fields[at].fields.iter().rev());
        }
        fields
    }

    /// Returns the number of bytes that do not belong to a record.
    pub fn rest(&self) -> usize {
        self.rest
    }

    /// Returns the total bytes of tags, lengths and payloads, in this order.
    pub fn parts(&self) -> [usize; 3] {
        let fields = self.fields.iter().map(|field| &field.bytes);
        fields.fold([0; 3], |[tag, length, payload], bytes| {
            [tag + bytes.tag, length + bytes.length, payload + bytes.payload]
        })
    }

    /// Adds a message that is nested in the field at index `parent`.
    fn add_to(&mut self, parent: Option<usize>, input: &[u8], message: &Message) {
        for record in &message.records {
            let at = self.position(parent, record);
            let bytes = &mut self.fields[at].bytes;
            bytes.add(record);
            match record.likely_message(input) {
                Some(inner) => self.add_to(Some(at), input, inner),
                None => bytes.payload += payload_len(&record.value),
            }
        }
        self.rest += message.rest().len();
    }

    fn position(&mut self, parent: Option<usize>, record: &Record) -> usize {
        let number = record.tag.number();
        *self.positions.entry((parent, number)).or_insert_with(|| {
            let at = self.fields.len();
            let mut path = parent.map(|parent| self.fields[parent].bytes.path.clone()).unwrap_or_default();
            path.push(number);
            let name = record.field.map(known::name);
            self.fields.push(FieldNode {
                bytes: FieldBytes { path, name, ..FieldBytes::default() },
                fields: Vec::new(),
            });
            if let Some(parent) = parent {
                self.fields[parent].fields.push(at);
            }
            at
        })
    }
}

impl FieldBytes {
    fn add(&mut self, record: &Record) {
        self.count += 1;
        self.tag += record.tag.span.len();
        self.total += record.span().len();
        match &record.value {
            Value::Len { length, .. } => self.length += length.span.len(),
            Value::Group { end: Some(end), .. } => self.tag += end.span.len(),
            _ => {}
        }
    }
}

fn payload_len(value: &Value) -> usize {
    match value {
        Value::Varint(varint) => varint.span.len(),
        Value::I64 { span, .. } | Value::I32 { span, .. } | Value::Len { payload: span, .. } => span.len(),
        Value::Group { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dissect::{Limits, Span, dissect};

    #[test]
    fn each_byte_is_counted_once() {
        // 1: {1: 150} 2: "ab" 1: {1: 1 2: 7i32} 3: !{1: 1}, and one extra byte.
        let input = b"\x0a\x03\x08\x96\x01\x12\x02ab\x0a\x07\x08\x01\x15\x07\0\0\0\x1b\x08\x01\x1c\x00";
        let message = dissect(input, Span::all(input), None, &Limits::default());
        let mut account = ByteAccount::default();
        account.add(input, &message);
        let field_bytes = |path: &[u32], count, tag, length, payload, total| FieldBytes {
            path: path.to_vec(),
            name: None,
            count,
            tag,
            length,
            payload,
            total,
        };
        assert_eq!(
            account.fields(),
            [
                &field_bytes(&[1], 2, 2, 2, 0, 14),
                &field_bytes(&[1, 1], 2, 2, 0, 3, 5),
                &field_bytes(&[1, 2], 1, 1, 0, 4, 5),
                &field_bytes(&[2], 1, 1, 1, 2, 4),
                &field_bytes(&[3], 1, 2, 0, 0, 4),
                &field_bytes(&[3, 1], 1, 1, 0, 1, 2),
            ]
        );
        assert_eq!((account.rest(), account.parts()), (1, [9, 3, 10]));
        assert_eq!(account.rest() + account.parts().iter().sum::<usize>(), input.len());
    }
}
