//! From the text of `.proto` files to descriptors, in memory: with [protox], which knows proto2 and proto3.

use std::path::Path;
use std::sync::Arc;

use miette::Diagnostic;
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use thiserror::Error;

/// Compiles `files`, named as imports name them, and all that they import, to the bytes of a
/// `google.protobuf.FileDescriptorSet` for [`Schema::from_descriptor_set`](crate::Schema::from_descriptor_set).
/// `read` gives the text of a file; `google/protobuf/*.proto` need not be among them.
///
/// ```
/// use thalweg_protobuf::{Schema, sources};
///
/// let point = "syntax = 'proto3'; message Point { int32 x = 1; }";
/// let set = sources::compile(&["point.proto"], |name| (name == "point.proto").then(|| point.to_owned()))?;
/// assert!(Schema::from_descriptor_set(&set)?.message("Point").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// For files that are not there or not right, and [`SourceError::Edition`] for those that only `protoc` can compile.
pub fn compile(
    files: &[&str],
    read: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> Result<Vec<u8>, SourceError> {
    let mut resolver = ChainFileResolver::new();
    let read = Arc::new(read);
    resolver.add(Sources(read.clone()));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    for file in files {
        compiler.open_file(file).map_err(|error| SourceError::of(&error, &*read))?;
    }
    Ok(compiler.encode_file_descriptor_set())
}

/// `.proto` files that could not be compiled.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file that says `edition = …`.
    #[error(
        "{file} is written in an edition, and only proto2 and proto3 are compiled here: give a descriptor set \
         that protoc wrote with --include_imports -o"
    )]
    Edition {
        /// As imports name it.
        file: String,
    },
    /// Anything that protox says.
    #[error("{message}")]
    Invalid {
        /// The file and what is wrong with it.
        message: String,
    },
}

impl SourceError {
    fn of(error: &protox::Error, read: &dyn Fn(&str) -> Option<String>) -> SourceError {
        match error.to_string().split_once(EDITION) {
            Some((_, file)) => SourceError::Edition { file: file.to_owned() },
            None => SourceError::Invalid {
                message: match error.file() {
                    Some(file) => match position(error, &read(file).unwrap_or_default()) {
                        Some((line, column)) => format!("{file}:{line}:{column}: {error}"),
                        None if !error.to_string().contains(file) => format!("{file}: {error}"),
                        None => error.to_string(),
                    },
                    None => error.to_string(),
                },
            },
        }
    }
}

/// Line and column of an error, both from 1.
fn position(error: &protox::Error, source: &str) -> Option<(usize, usize)> {
    let offset = error.labels()?.next()?.offset();
    let before = source.get(..offset)?;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Some((before.matches('\n').count() + 1, before[line_start..].chars().count() + 1))
}

/// Files by name.
struct Sources<R>(Arc<R>);

/// How our own error is known again behind protox's.
const EDITION: &str = "is written in an edition: ";

impl<R: Fn(&str) -> Option<String> + Send + Sync> FileResolver for Sources<R> {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        path.to_str().map(str::to_owned)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let Some(source) = (self.0)(name) else { return Err(protox::Error::file_not_found(name)) };
        if is_edition(&source) {
            return Err(protox::Error::new(format!("{EDITION}{name}")));
        }
        File::from_source(name, &source)
    }
}

/// Whether the first word is `edition`; comments may come before.
fn is_edition(source: &str) -> bool {
    let mut rest = source.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start();
        let (end, len) = match rest.get(..2) {
            Some("//") => ("\n", 1),
            Some("/*") => ("*/", 2),
            _ => break,
        };
        match rest.find(end) {
            Some(at) => rest = &rest[at + len..],
            None => return false,
        }
    }
    rest.strip_prefix("edition").is_some_and(|rest| rest.trim_start().starts_with('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile_one(source: &'static str) -> Result<Vec<u8>, SourceError> {
        compile(&["a.proto"], move |name| (name == "a.proto").then(|| source.to_owned()))
    }

    #[test]
    fn an_edition_is_told_from_the_rest() {
        assert!(is_edition("// a\n/* b\n */ edition\n= \"2023\";"));
        assert!(!is_edition("syntax = \"proto3\"; // edition = "));
        assert!(!is_edition("/* edition = 2023"));
        assert!(!is_edition("editions"));
        let error = compile_one("edition = '2023';").expect_err("protox stops at proto3");
        assert_eq!(error, SourceError::Edition { file: "a.proto".to_owned() });
    }

    #[test]
    fn errors_name_their_file() {
        let error = compile_one("syntax = 'proto3'; message A { B b = 1; }").expect_err("there is no B");
        assert!(error.to_string().contains("a.proto") && error.to_string().contains("'B'"), "{error}");
        let error =
            compile_one("syntax = 'proto3';\nmessage A { int32 x = 1 }").expect_err("a semicolon is missing");
        assert!(error.to_string().starts_with("a.proto:2:"), "{error}");
        let error = compile_one("import 'b.proto';").expect_err("there is no b.proto");
        assert!(error.to_string().contains("b.proto"), "{error}");
    }

    #[test]
    fn well_known_types_need_no_source() {
        let source =
            "syntax = 'proto3'; import 'google/protobuf/any.proto'; message A { google.protobuf.Any b = 1; }";
        let schema = crate::Schema::from_descriptor_set(&compile_one(source).expect("right")).expect("right");
        assert_eq!(schema.files().len(), 2);
    }
}
