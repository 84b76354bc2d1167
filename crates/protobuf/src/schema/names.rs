//! Tables from names to indexes. Their keys come from the schema, not from a peer, so a quick hash is enough.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// From a name to what it stands for.
pub(crate) type Names<T> = HashMap<Box<str>, T, BuildHasherDefault<NameHasher>>;

/// Eight bytes at a time: names are short, and looked up for each key of a JSON object.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
    }

    fn finish(&self) -> u64 {
        // The table takes its index from the low bits, and multiplication mixes upwards.
        self.0 ^ (self.0 >> 32)
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }
}

/// The lowerCamelCase form of a field's name, by protoc's rule: underscores go, and what follows one is capitalised.
pub(crate) fn json_name(name: &str) -> String {
    let mut json = String::with_capacity(name.len());
    let mut capitalise = false;
    for character in name.chars() {
        if character == '_' {
            capitalise = true;
        } else if capitalise {
            json.push(character.to_ascii_uppercase());
            capitalise = false;
        } else {
            json.push(character);
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_those_of_protoc() {
        let names = ["foo_bar", "fooBar", "FOO_BAR", "_foo", "foo_", "foo__bar", "field_1", "a1_b2"];
        let expected = ["fooBar", "fooBar", "FOOBAR", "Foo", "foo", "fooBar", "field1", "a1B2"];
        assert_eq!(names.map(json_name), expected);
    }
}
