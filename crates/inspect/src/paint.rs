//! Styles of the tree output.

/// Role of a piece of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Text without a role.
    Plain,
    /// Bytes of a tag.
    Tag,
    /// Bytes of a length.
    Length,
    /// Bytes of a value.
    Payload,
    /// Names of fields and headings.
    Name,
    /// Problems.
    Problem,
    /// Valid but unusual encodings.
    Remark,
    /// Offsets and other details.
    Aside,
}

/// Styles of pieces. None by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    style: Option<fn(Role, &str) -> String>,
}

impl Paint {
    /// Styles each non-empty piece with this function.
    pub fn with(style: fn(Role, &str) -> String) -> Self {
        Self { style: Some(style) }
    }

    pub(crate) fn paint(self, role: Role, text: &str) -> String {
        match self.style {
            Some(style) if !text.is_empty() => style(role, text),
            _ => text.to_owned(),
        }
    }
}
