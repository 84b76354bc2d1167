//! Compiles descriptors to a [`Pool`]: declares names, then links fields, extensions and services to them.
//!
//! `declare` enters all names and `enums` reads the values of an enum. Once all names are known, `link` completes
//! messages and services. `field` compiles one field, `layout` builds the table of a message, and `checks` validates
//! names and numbers.

mod checks;
mod declare;
mod enums;
mod field;
mod layout;
mod link;

use std::collections::HashMap;

use super::error::{Problem, SchemaError};
use super::features::{Edition, Features};
use super::pool::Pool;
use super::raw;
use super::table::Entry;

/// Compiles the files, in any order.
pub(super) fn compile(files: &[&[u8]]) -> Result<Pool, SchemaError> {
    let mut read = Vec::with_capacity(files.len());
    for bytes in files {
        let name = raw::name_of_file(bytes);
        read.push(raw::File::read(bytes).map_err(|problem| at(name, "", problem))?);
    }
    let mut compiler = Compiler::default();
    let mut kept = HashMap::with_capacity(read.len());
    for (index, file) in read.iter().enumerate() {
        match kept.insert(file.name, index) {
            Some(earlier) if files[earlier] == files[index] => {}
            Some(_) => return Err(at(file.name, "", Problem::DuplicateFile)),
            None => compiler.declare(file)?,
        }
    }
    compiler.link()?;
    Ok(compiler.pool)
}

fn at(file: &str, element: &str, problem: Problem) -> SchemaError {
    SchemaError { file: file.to_owned(), element: element.to_owned(), problem }
}

/// The scope of a declaration.
#[derive(Clone, Copy)]
struct Scope<'s> {
    file: u32,
    edition: Edition,
    /// Name of the package or message; may be empty.
    name: &'s str,
    message: u32,
    features: Features,
}

/// A message whose fields are linked once all names are known.
struct PendingMessage<'a> {
    index: u32,
    message: &'a raw::Message<'a>,
    features: Features,
}

/// An extension, and the scope that declares it.
struct PendingExtension<'a> {
    file: u32,
    scope: String,
    field: &'a raw::Field<'a>,
    features: Features,
}

#[derive(Default)]
struct Compiler<'a> {
    pool: Pool,
    /// One per field of the pool, until the messages' tables take them.
    entries: Vec<Entry>,
    messages: Vec<PendingMessage<'a>>,
    extensions: Vec<PendingExtension<'a>>,
    services: Vec<(u32, &'a raw::Service<'a>)>,
}

/// Joins a full name; either part may be empty.
fn join(scope: &str, name: &str) -> String {
    match (scope.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => scope.to_owned(),
        _ => format!("{scope}.{name}"),
    }
}

fn not_a(name: &str, expected: &'static str) -> Problem {
    Problem::NotA { name: name.to_owned(), expected }
}
