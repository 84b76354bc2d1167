//! Names as members of JSON objects have them.

use std::fmt;
use std::sync::Arc;

use crate::text::quoted;

/// The name of a field: as it is, and as it is written before the field's value. Clones share both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    text: Arc<str>,
    member: Arc<[u8]>,
}

impl Key {
    pub(crate) fn new(name: &str) -> Key {
        let mut member = vec![b','];
        // What comes from a `str` is UTF-8.
        quoted::string(name.as_bytes(), &mut member);
        member.push(b':');
        Key { text: name.into(), member: member.into() }
    }

    /// The name.
    #[inline]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// `,"name":`, escaped.
    #[inline]
    pub(crate) fn member(&self) -> &[u8] {
        &self.member
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn a_name_is_kept_with_its_quotes() {
        for (name, member) in
            [("name", ",\"name\":"), ("", ",\"\":"), ("a\"b", ",\"a\\\"b\":"), ("é", ",\"é\":")]
        {
            let key = Key::new(name);
            assert_eq!((key.text(), key.member()), (name, member.as_bytes()));
        }
    }
}
