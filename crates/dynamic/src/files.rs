//! Descriptors from `.proto` files and descriptor sets.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thalweg_protobuf::sources::{Compiler, Disk, FolderError, Folders, SourceError};
use thalweg_protobuf::{Schema, SchemaError};

/// Why files make no schema.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file is not there, or not readable.
    #[error("cannot read {}: {error}", .file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A path that Protobuf's names of files cannot have.
    #[error("{}: not a UTF-8 file name", .0.display())]
    Name(PathBuf),
    /// The text of a `.proto` file is not right.
    #[error("{0}")]
    Source(SourceError),
    /// A descriptor set in place of a `.proto` file.
    #[error("{file} is a descriptor set, not a .proto file; use --protoset {file}", file = .0.display())]
    DescriptorSet(PathBuf),
    /// The descriptors contradict each other.
    #[error("{}: {error}", .file.display())]
    Schema {
        /// Of which file.
        file: PathBuf,
        /// How.
        error: Box<SchemaError>,
    },
}

/// What `.proto` files or descriptor sets declare.
#[derive(Debug)]
pub struct Compiled {
    /// The descriptors of the files and all that they import.
    pub schema: Schema,
    /// A `google.protobuf.FileDescriptorSet`, encoded.
    pub set: Vec<u8>,
}

/// Compiles `.proto` files. What they import is looked for in `import_paths`, then beside the files, then in the
/// current directory. A file of `protos` that is not there is looked for in the same places.
///
/// # Errors
///
/// For files that are not there or not right.
pub fn compile(protos: &[PathBuf], import_paths: &[PathBuf]) -> Result<Compiled, FilesError> {
    // A parser of sources would take it for a source full of mistakes. Its first field is 1, a message.
    let is_set = |bytes: &[u8]| bytes.starts_with(&[0x0a]) && Schema::from_descriptor_set(bytes).is_ok();
    if let Some(set) = protos.iter().find(|proto| fs::read(proto).is_ok_and(|bytes| is_set(&bytes))) {
        return Err(FilesError::DescriptorSet(set.clone()));
    }
    let mut folders = Folders::new(DISK);
    for path in import_paths {
        folders.push(path);
    }
    let mut names = Vec::new();
    for proto in protos {
        names.push(name_in(proto, &mut folders)?);
    }
    folders.push(".");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let set = Compiler::new(&folders).compile(&names).map_err(FilesError::Source)?.set;
    Compiled::of(set, protos)
}

/// Reads descriptor sets, as `protoc --include_imports -o FILE` writes them.
///
/// # Errors
///
/// For files that are not there or not right.
pub fn descriptor_sets(files: &[PathBuf]) -> Result<Compiled, FilesError> {
    let mut set = Vec::new();
    for file in files {
        // Sets one behind the other are one set of all their files.
        let bytes = fs::read(file).map_err(|error| FilesError::Read { file: file.clone(), error })?;
        set.extend(bytes);
    }
    Compiled::of(set, files)
}

impl Compiled {
    fn of(set: Vec<u8>, files: &[PathBuf]) -> Result<Self, FilesError> {
        let schema = Schema::from_descriptor_set(&set).map_err(|error| FilesError::Schema {
            file: files.first().cloned().unwrap_or_default(),
            error: Box::new(error),
        })?;
        Ok(Self { schema, set })
    }
}

const DISK: Disk = Disk { read: |path| fs::read(path), canonicalize: |path| fs::canonicalize(path) };

/// The name under which others would import a file. Where it is in none of the folders its own becomes one.
fn name_in(path: &Path, folders: &mut Folders) -> Result<String, FilesError> {
    let named = match folders.name(path) {
        Err(FolderError::Outside) => {
            folders.push(path.parent().unwrap_or(Path::new("")));
            folders.name(path)
        }
        named => named,
    };
    named.map_err(|error| match error {
        FolderError::NotFound(error) => FilesError::Read { file: path.to_owned(), error },
        _ => FilesError::Name(path.to_owned()),
    })
}
