//! Schemas on the command line: `.proto` files or descriptor sets, and a message type.

use clap::Args;
use thalweg_protobuf::{MessageType, Schema};

use crate::descriptor_files::FilesArgs;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(mut_arg("import_path", |path| path.short_alias('I')))]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    files: FilesArgs,

    /// Message type: full name, or a unique suffix [default: the only one]
    #[arg(long = "type", value_name = "MESSAGE")]
    message: Option<String>,
}

impl SchemaArgs {
    /// Loads the schema, if one is named.
    pub(crate) fn load(&self) -> Result<Option<Schema>, Failure> {
        match self.files.read()? {
            None if self.message.is_some() => {
                Err(Failure::bad_arguments("--type needs --proto or --protoset"))
            }
            read => Ok(read.map(|read| read.schema)),
        }
    }

    pub(crate) fn named_message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Returns the named message type, or the only one.
    pub(crate) fn message<'s>(&self, schema: &'s Schema) -> Result<MessageType<'s>, Failure> {
        Ok(thalweg_dynamic::message(schema, self.named_message())?)
    }
}
