//! Field names, prepared as JSON object keys.

use std::fmt;
use std::sync::Arc;

use crate::text::quoted;

/// A field name, plain and as a JSON member prefix. Clones share both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    text: Arc<str>,
    member: Arc<[u8]>,
}

impl Key {
    pub(crate) fn new(name: &str) -> Key {
        let mut member = vec![b','];
        // The output is UTF-8, since the input is a `str`.
        quoted::string(name.as_bytes(), &mut member);
        member.push(b':');
        Key { text: name.into(), member: member.into() }
    }

    /// Returns the name.
    #[inline]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `,"name":`, escaped.
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
    fn key_has_the_quoted_name() {
        for (name, member) in
            [("name", ",\"name\":"), ("", ",\"\":"), ("a\"b", ",\"a\\\"b\":"), ("é", ",\"é\":")]
        {
            let key = Key::new(name);
            assert_eq!((key.text(), key.member()), (name, member.as_bytes()));
        }
    }
}
