//! Wire format writer.

use crate::sources::locations::Locations;

#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(super) fn tag(&mut self, number: i32, wire_type: u64) {
        self.raw_varint((number as u64) << 3 | wire_type);
    }

    pub(super) fn varint(&mut self, number: i32, value: u64) {
        self.tag(number, 0);
        self.raw_varint(value);
    }

    pub(super) fn int(&mut self, number: i32, value: i32) {
        self.varint(number, i64::from(value) as u64);
    }

    pub(super) fn fixed32(&mut self, number: i32, value: u32) {
        self.tag(number, 5);
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn fixed64(&mut self, number: i32, value: u64) {
        self.tag(number, 1);
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn bytes(&mut self, number: i32, bytes: &[u8]) {
        self.tag(number, 2);
        self.raw_varint(bytes.len() as u64);
        self.raw(bytes);
    }

    pub(super) fn text(&mut self, number: i32, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    /// Writes a length-delimited field whose length is known only after its content is written.
    pub(super) fn nested(&mut self, number: i32, write: impl FnOnce(&mut Self)) {
        self.tag(number, 2);
        let at = self.begin();
        write(self);
        self.end(at);
    }

    /// Reserves one byte for the length of the following content.
    pub(super) fn begin(&mut self) -> usize {
        self.bytes.push(0);
        self.bytes.len()
    }

    pub(super) fn end(&mut self, start: usize) {
        let len = self.bytes.len() - start;
        if let Ok(short @ 0..0x80) = u8::try_from(len) {
            self.bytes[start - 1] = short;
            return;
        }
        let mut length = Writer::default();
        length.raw_varint(len as u64);
        self.bytes.splice(start - 1..start, length.bytes);
    }

    pub(super) fn source_info(&mut self, locations: &Locations) {
        self.nested(9, |writer| {
            for location in locations.iter() {
                writer.nested(1, |writer| {
                    let path = locations.path(location);
                    if !path.is_empty() {
                        writer.nested(1, |writer| {
                            for &part in path {
                                writer.raw_varint(i64::from(part) as u64);
                            }
                        });
                    }
                    writer.nested(2, |writer| {
                        for part in location.span() {
                            writer.raw_varint(u64::from(part));
                        }
                    });
                    let Some(comments) = location.comments() else { return };
                    if !comments.leading.is_empty() {
                        writer.text(3, &comments.leading);
                    }
                    if !comments.trailing.is_empty() {
                        writer.text(4, &comments.trailing);
                    }
                    comments.detached.iter().for_each(|detached| writer.text(6, detached));
                });
            }
        });
    }
}
