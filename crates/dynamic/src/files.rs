//! Descriptors from `.proto` files and descriptor sets.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thalweg_protobuf::sources::{Compiler, Disk, FolderError, Folders, SourceError};
use thalweg_protobuf::{Schema, SchemaError};

/// Error of loading descriptors.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file does not exist or is not readable.
    #[error("failed to read {}: {error}", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// A path that is not UTF-8, as Protobuf file names must be.
    #[error("{}: not a UTF-8 file name", .0.display())]
    Name(PathBuf),
    /// A `.proto` file is invalid.
    #[error("{0}")]
    Source(SourceError),
    /// A descriptor set was given instead of a `.proto` file.
    #[error("{file} is a descriptor set, not a .proto file; use --protoset {file}", file = .0.display())]
    DescriptorSet(PathBuf),
    /// The descriptors are inconsistent.
    #[error("{}: {error}", .file.display())]
    Schema {
        /// The file.
        file: PathBuf,
        /// The inconsistency.
        error: Box<SchemaError>,
    },
}

/// Declarations of `.proto` files or descriptor sets.
#[derive(Debug)]
pub struct Compiled {
    /// Descriptors of the files and their imports.
    pub schema: Schema,
    /// Encoded `google.protobuf.FileDescriptorSet`.
    pub set: Vec<u8>,
}

/// Compiles `.proto` files. Imports are searched in `import_paths`, the files' folders and the current directory. Files
/// of `protos` that do not exist are searched there too.
///
/// # Errors
///
/// Returns an error for missing or invalid files.
pub fn compile(protos: &[PathBuf], import_paths: &[PathBuf]) -> Result<Compiled, FilesError> {
    // Detected here, because the source parser would report many errors. The first field of a set is 1, a message.
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

/// Reads descriptor sets in the format of `protoc --include_imports -o FILE`.
///
/// # Errors
///
/// Returns an error for missing or invalid files.
pub fn descriptor_sets(files: &[PathBuf]) -> Result<Compiled, FilesError> {
    let mut set = Vec::new();
    for file in files {
        // Concatenated sets form one set of all their files.
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

/// Returns the import name of a file. If it is outside all folders, its own is added.
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
