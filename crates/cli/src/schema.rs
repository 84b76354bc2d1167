//! Schemas that are named on the command line: `.proto` files or a descriptor set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use thalweg_protobuf::sources::{self, SourceError};
use thalweg_protobuf::{MessageType, Schema};

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The .proto file that declares the message; imports are looked for in --import-path, beside it, and here
    #[arg(long, value_name = "FILE", conflicts_with = "descriptor_set")]
    proto: Option<PathBuf>,

    /// Where imports are looked for; may be given more than once
    #[arg(short = 'I', long, value_name = "DIRECTORY", requires = "proto")]
    import_path: Vec<PathBuf>,

    /// A descriptor set, as `protoc --include_imports -o FILE` writes it
    #[arg(long, value_name = "FILE")]
    descriptor_set: Option<PathBuf>,

    /// The message: its full name, or as much of its end as is unique [default: the only one that there is]
    #[arg(long = "type", value_name = "MESSAGE")]
    message: Option<String>,
}

impl SchemaArgs {
    /// What is named; none if nothing is.
    pub(crate) fn load(&self) -> Result<Option<Schema>, Failure> {
        let (set, name) = match (&self.proto, &self.descriptor_set) {
            (Some(path), _) => (compiled(path, &self.import_path)?, path),
            (None, Some(path)) => {
                let set = fs::read(path)
                    .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
                (set, path)
            }
            (None, None) if self.message.is_some() => {
                return Err(Failure::bad_arguments(
                    "--type needs --proto or --descriptor-set, which declare it",
                ));
            }
            (None, None) => return Ok(None),
        };
        Schema::from_descriptor_set(&set)
            .map(Some)
            .map_err(|error| Failure::failed(format!("{}: {error}", name.display())))
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
        [] => Err(Failure::bad_arguments(format!("there is no message `{name}`{}", near(schema, name)))),
        _ => {
            let names = listed(candidates.iter().map(|message| message.full_name()));
            Err(Failure::bad_arguments(format!("`{name}` may be {names}: say more of --type")))
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
        [] => Err(Failure::bad_arguments("no message is declared there")),
        _ => {
            let names = listed(messages.iter().map(|message| message.full_name()));
            Err(Failure::bad_arguments(format!("which message is it? Say --type with one of {names}")))
        }
    }
}

/// All but those that the compiler made for maps.
fn declared(schema: &Schema) -> impl Iterator<Item = MessageType<'_>> {
    schema.messages().filter(|message| !message.is_map_entry())
}

/// Names that are close to one that is not there.
fn near(schema: &Schema, name: &str) -> String {
    /// Less is chance.
    const LIKENESS_MIN: f64 = 0.75;
    let name = name.to_lowercase();
    let likeness = |message: &MessageType| {
        let (full, own) = (message.full_name().to_lowercase(), message.name().to_lowercase());
        strsim::jaro_winkler(&full, &name).max(strsim::jaro_winkler(&own, &name))
    };
    let mut near: Vec<(f64, &str)> = declared(schema)
        .map(|message| (likeness(&message), message.full_name()))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    if near.is_empty() {
        let names = listed(declared(schema).map(MessageType::full_name));
        return if names.is_empty() { String::new() } else { format!("; there are {names}") };
    }
    near.truncate(3);
    format!("; is it {}?", near.iter().map(|(_, name)| format!("`{name}`")).collect::<Vec<_>>().join(" or "))
}

/// Names in a row, the first ones of many.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The descriptor set of a file and all that it imports.
fn compiled(path: &Path, import_paths: &[PathBuf]) -> Result<Vec<u8>, Failure> {
    // Known at once, and said as the system says it.
    fs::metadata(path)
        .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?;
    let (name, roots) = roots(path, import_paths)?;
    let read = {
        let roots = roots.clone();
        move |name: &str| roots.iter().find_map(|root| fs::read_to_string(root.join(name)).ok())
    };
    match sources::compile(&[&name], read) {
        Ok(set) => Ok(set),
        Err(SourceError::Edition { file }) => by_protoc(&name, &roots, &file),
        Err(error) => Err(Failure::failed(one_line(&error.to_string()))),
    }
}

/// The name under which others would import a file, and where to look for imports.
fn roots(path: &Path, import_paths: &[PathBuf]) -> Result<(String, Vec<PathBuf>), Failure> {
    let mut roots = import_paths.to_vec();
    let below = import_paths.iter().find_map(|root| path.strip_prefix(root).ok());
    let name = below.unwrap_or_else(|| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        roots.insert(0, parent.unwrap_or(Path::new(".")).to_path_buf());
        Path::new(path.file_name().unwrap_or_default())
    });
    roots.push(PathBuf::from("."));
    match name.to_str() {
        Some(name) => Ok((name.to_owned(), roots)),
        None => Err(Failure::bad_arguments(format!("{} is no name in UTF-8", path.display()))),
    }
}

/// Lets protoc compile what is written in an edition, which is said.
fn by_protoc(name: &str, roots: &[PathBuf], edition_file: &str) -> Result<Vec<u8>, Failure> {
    let why = format!("{edition_file} is written in an edition, which takes protoc");
    let directory = tempfile::tempdir()
        .map_err(|error| Failure::failed(format!("{why}; no temporary directory: {error}")))?;
    let set = directory.path().join("set");
    let mut command = Command::new("protoc");
    for root in roots {
        command.arg("-I").arg(root);
    }
    let output =
        command.arg("--include_imports").arg("-o").arg(&set).arg(name).output().map_err(|error| {
            Failure::failed(format!("{why}, and protoc does not start: {error}; or say --descriptor-set"))
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let errors: Vec<&str> = said.lines().filter(|line| !line.contains("WARNING")).collect();
        let said = one_line(&errors.join("\n"));
        // Editions came with protoc 27.
        return Err(Failure::failed(format!("{why} of 27 or later, and this one says: {said}")));
    }
    eprintln!("note: {why}: compiled by protoc");
    fs::read(&set).map_err(|error| Failure::failed(format!("cannot read what protoc wrote: {error}")))
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
