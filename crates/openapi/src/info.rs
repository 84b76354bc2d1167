//! What a document says that is not in the schema.

use thalweg_protobuf::Field;

use crate::comments::Comments;

/// What a document says that is not in the schema.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// The name of it all; that of the services if it is empty.
    pub title: String,
    /// Of the services, not of OpenAPI; `0` if it is empty.
    pub version: String,
    /// In Markdown. That of the only service if it is empty.
    pub description: String,
    /// Where the services are: URLs. Without any, where the document came from.
    pub servers: Vec<String>,
    /// Fields have the names of the schema (`user_id`), and not those of JSON (`userId`).
    pub schema_names: bool,
    /// Enums are numbers.
    pub enum_numbers: bool,
    /// Those of the `.proto` files.
    pub comments: Comments,
}

impl Info {
    /// With these comments.
    #[must_use]
    pub fn comments(mut self, comments: Comments) -> Self {
        self.comments = comments;
        self
    }

    /// The name that a field has in JSON.
    pub(crate) fn name<'s>(&self, field: Field<'s>) -> &'s str {
        if self.schema_names { field.name() } else { field.json_name() }
    }
}
