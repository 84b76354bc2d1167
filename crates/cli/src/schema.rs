//! Schemas that are named on the command line: `.proto` files or a descriptor set.

use std::path::PathBuf;

use clap::Args;
use thalweg_dynamic::{files, listed, near};
use thalweg_protobuf::{MessageType, Schema};

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// .proto file that declares the message; repeatable
    ///
    /// Imports are looked up in --import-path, in the folder of the file, and in the current folder.
    #[arg(long, value_name = "FILE", conflicts_with = "descriptor_set")]
    proto: Vec<PathBuf>,

    /// Directory to search for imports; repeatable
    #[arg(
        short = 'i',
        short_alias = 'I',
        long,
        visible_alias = "import-paths",
        value_name = "DIRECTORY",
        requires = "proto"
    )]
    import_path: Vec<PathBuf>,

    /// Descriptor set of `protoc --include_imports -o FILE`
    #[arg(long = "protoset", visible_alias = "descriptor-set", value_name = "FILE")]
    descriptor_set: Option<PathBuf>,

    /// Message type: full name, or a unique suffix [default: the only one]
    #[arg(long = "type", value_name = "MESSAGE")]
    message: Option<String>,
}

impl SchemaArgs {
    /// What is named; none if nothing is.
    pub(crate) fn load(&self) -> Result<Option<Schema>, Failure> {
        match (&self.proto[..], &self.descriptor_set) {
            (protos @ [_, ..], _) => {
                check_sources(protos)?;
                let compiled = files::compile(protos, &self.import_path).map_err(Failure::failed)?;
                Ok(Some(compiled.schema))
            }
            ([], Some(path)) => {
                let read = files::descriptor_sets(std::slice::from_ref(path));
                Ok(Some(read.map_err(Failure::failed)?.0))
            }
            ([], None) if self.message.is_some() => {
                Err(Failure::bad_arguments("--type needs --proto or --protoset"))
            }
            ([], None) => Ok(None),
        }
    }

    /// The message that was named, if one was.
    pub(crate) fn named_message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The message that is meant.
    pub(crate) fn message<'s>(&self, schema: &'s Schema) -> Result<MessageType<'s>, Failure> {
        match &self.message {
            Some(name) => named(schema, name.trim_start_matches('.')),
            None => only(schema),
        }
    }
}

/// The message of that name, or the only one whose name ends so.
fn named<'s>(schema: &'s Schema, name: &str) -> Result<MessageType<'s>, Failure> {
    if let Some(message) = schema.message(name) {
        return Ok(message);
    }
    let end = format!(".{name}");
    let candidates: Vec<MessageType> =
        declared(schema).filter(|message| message.full_name().ends_with(&end)).collect();
    match candidates[..] {
        [message] => Ok(message),
        [] => Err(Failure::bad_arguments(format!(
            "unknown message `{name}`{}",
            near(declared(schema).map(MessageType::full_name), name)
        ))),
        _ => {
            let names = listed(candidates.iter().map(|message| message.full_name()));
            Err(Failure::bad_arguments(format!("`{name}` is ambiguous: {names}; use a longer --type")))
        }
    }
}

fn only(schema: &Schema) -> Result<MessageType<'_>, Failure> {
    let own = |message: &MessageType| {
        message.parent().is_none() && !message.file().name().starts_with("google/protobuf/")
    };
    let messages: Vec<MessageType> = declared(schema).filter(own).collect();
    match messages[..] {
        [message] => Ok(message),
        [] => Err(Failure::bad_arguments("no message is declared")),
        _ => {
            let names = listed(messages.iter().map(|message| message.full_name()));
            Err(Failure::bad_arguments(format!(
                "several messages are declared; use --type with one of {names}"
            )))
        }
    }
}

/// All but those that the compiler made for maps.
fn declared(schema: &Schema) -> impl Iterator<Item = MessageType<'_>> {
    schema.messages().filter(|message| !message.is_map_entry())
}

/// That none of the files is a descriptor set, which a parser of sources would take for a source full of mistakes.
pub(crate) fn check_sources(files: &[PathBuf]) -> Result<(), Failure> {
    // Its first field is 1, a message.
    let is_set = |bytes: &[u8]| bytes.starts_with(&[0x0a]) && Schema::from_descriptor_set(bytes).is_ok();
    match files.iter().find(|file| std::fs::read(file).is_ok_and(|bytes| is_set(&bytes))) {
        Some(set) => Err(Failure::bad_arguments(format!(
            "{} is a descriptor set, not a .proto file; use --protoset {0}",
            set.display()
        ))),
        None => Ok(()),
    }
}
