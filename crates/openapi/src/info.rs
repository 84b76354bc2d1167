//! Parts of a document that are not in the schema.

use thalweg_protobuf::Field;

use crate::comments::Comments;

/// Parts of a document that are not in the schema.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Info {
    /// Title of the document. Default: the names of the services.
    pub title: String,
    /// Version of the services, not of OpenAPI. Default: `0`.
    pub version: String,
    /// Description in Markdown. Default: the comment of the service, if there is only one.
    pub description: String,
    /// URLs of the services. Default: the origin of the document.
    pub servers: Vec<String>,
    /// Uses schema names (`user_id`) instead of JSON names (`userId`). Default: false.
    pub schema_names: bool,
    /// Describes enums as numbers. Default: false.
    pub enum_numbers: bool,
    /// Comments of the `.proto` files.
    pub comments: Comments,
}

impl Info {
    /// Sets [`title`](field@Self::title).
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Sets [`version`](field@Self::version).
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets [`description`](field@Self::description).
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets [`servers`](field@Self::servers).
    pub fn servers(mut self, servers: Vec<String>) -> Self {
        self.servers = servers;
        self
    }

    /// Sets [`schema_names`](field@Self::schema_names).
    pub fn schema_names(mut self, schema_names: bool) -> Self {
        self.schema_names = schema_names;
        self
    }

    /// Sets [`enum_numbers`](field@Self::enum_numbers).
    pub fn enum_numbers(mut self, enum_numbers: bool) -> Self {
        self.enum_numbers = enum_numbers;
        self
    }

    /// Sets the comments.
    #[must_use]
    pub fn comments(mut self, comments: Comments) -> Self {
        self.comments = comments;
        self
    }

    /// Returns the JSON name of a field.
    pub(crate) fn name<'s>(&self, field: Field<'s>) -> &'s str {
        if self.schema_names { field.name() } else { field.json_name() }
    }
}
