//! Styles of the pieces of a tree.

/// What a piece of the output is.
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
    /// What is wrong.
    Problem,
    /// What is unusual, but not wrong.
    Remark,
    /// Offsets and other details.
    Aside,
}

/// How pieces are styled. By default they are not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    style: Option<fn(Role, &str) -> String>,
}

impl Paint {
    /// Styles each piece that is not empty with this function.
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
