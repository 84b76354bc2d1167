//! Ways to refer to a field of a message.

use crate::schema::{Field, Schema};

/// A reference to a field of a message: its name, its number or its [`Field`].
///
/// An extension is referred to by `[full.name]`, its number or its [`Field`].
pub trait FieldKey: sealed::Sealed + Copy {
    /// Returns the field's index in the message's table.
    #[doc(hidden)]
    fn find(self, schema: &Schema, message: u32) -> Option<usize>;

    /// Describes the key in errors.
    #[doc(hidden)]
    fn describe(self) -> String;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for &str {}
    impl Sealed for u32 {}
    impl Sealed for crate::schema::Field<'_> {}
}

impl FieldKey for &str {
    fn find(self, schema: &Schema, message: u32) -> Option<usize> {
        let field = match self.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            Some(name) => schema.extension(name)?,
            None => schema.message_at(message).field(self)?,
        };
        field.find(schema, message)
    }

    fn describe(self) -> String {
        self.to_owned()
    }
}

impl FieldKey for u32 {
    fn find(self, schema: &Schema, message: u32) -> Option<usize> {
        schema.pool().tables[message as usize].find(self).map(|(index, _)| index)
    }

    fn describe(self) -> String {
        format!("number {self}")
    }
}

impl FieldKey for Field<'_> {
    fn find(self, schema: &Schema, message: u32) -> Option<usize> {
        (self.schema().is(schema) && self.message().index() == message).then(|| self.entry_index())
    }

    fn describe(self) -> String {
        self.full_name()
    }
}
