//! Descriptors from `.proto` files and descriptor sets.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use thalweg_protobuf::sources::{self, SourceError};
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
    #[error("{} is no name in UTF-8", .0.display())]
    Name(PathBuf),
    /// The text of a `.proto` file is not right.
    #[error("{0}")]
    Source(String),
    /// Files of an edition, and protoc did not compile them.
    #[error("{file} is written in an edition, which takes protoc{why}")]
    Protoc {
        /// The first of them.
        file: String,
        /// What came of it.
        why: String,
    },
    /// The descriptors contradict each other.
    #[error("{}: {error}", .file.display())]
    Schema {
        /// Of which file.
        file: PathBuf,
        /// How.
        error: Box<SchemaError>,
    },
}

/// What `.proto` files were compiled to.
#[derive(Debug)]
pub struct Compiled {
    /// The descriptors of the files and all that they import.
    pub schema: Schema,
    /// A `google.protobuf.FileDescriptorSet`, encoded.
    pub set: Vec<u8>,
    /// Files of an edition were among them, so that protoc compiled them: the first.
    pub edition_file: Option<String>,
}

/// Compiles `.proto` files. What they import is looked for in `import_paths`, then beside the files, then in the
/// current directory.
///
/// What is written in an edition is compiled by `protoc`, which must be installed then.
///
/// # Errors
///
/// For files that are not there or not right.
pub fn compile(protos: &[PathBuf], import_paths: &[PathBuf]) -> Result<Compiled, FilesError> {
    let mut roots = import_paths.to_vec();
    let mut names = Vec::new();
    for proto in protos {
        // Known at once, and said as the system says it.
        fs::metadata(proto).map_err(|error| FilesError::Read { file: proto.clone(), error })?;
        names.push(name_in(proto, import_paths, &mut roots)?);
    }
    roots.push(PathBuf::from("."));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let read = {
        let roots = roots.clone();
        move |name: &str| roots.iter().find_map(|root| fs::read_to_string(root.join(name)).ok())
    };
    let (set, edition_file) = match sources::compile(&names, read) {
        Ok(set) => (set, None),
        Err(SourceError::Edition { file }) => (by_protoc(&names, &roots, &file)?, Some(file)),
        Err(error) => return Err(FilesError::Source(one_line(&error.to_string()))),
    };
    let file = || protos.first().cloned().unwrap_or_default();
    let schema = Schema::from_descriptor_set(&set)
        .map_err(|error| FilesError::Schema { file: file(), error: Box::new(error) })?;
    Ok(Compiled { schema, set, edition_file })
}

/// Reads descriptor sets, as `protoc --include_imports -o FILE` writes them; and their bytes, as one.
///
/// # Errors
///
/// For files that are not there or not right.
pub fn descriptor_sets(files: &[PathBuf]) -> Result<(Schema, Vec<u8>), FilesError> {
    let mut set = Vec::new();
    for file in files {
        // Sets one behind the other are one set of all their files.
        let bytes = fs::read(file).map_err(|error| FilesError::Read { file: file.clone(), error })?;
        set.extend(bytes);
    }
    let file = || files.first().cloned().unwrap_or_default();
    let schema = Schema::from_descriptor_set(&set)
        .map_err(|error| FilesError::Schema { file: file(), error: Box::new(error) })?;
    Ok((schema, set))
}

/// The name under which others would import a file. Where it is in none of the import paths its folder becomes a root.
fn name_in(path: &Path, import_paths: &[PathBuf], roots: &mut Vec<PathBuf>) -> Result<String, FilesError> {
    let below = import_paths.iter().find_map(|root| path.strip_prefix(root).ok());
    let name = below.unwrap_or_else(|| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        roots.push(parent.unwrap_or(Path::new(".")).to_path_buf());
        Path::new(path.file_name().unwrap_or_default())
    });
    name.to_str().map(str::to_owned).ok_or_else(|| FilesError::Name(path.to_owned()))
}

/// Lets protoc compile what is written in an edition.
fn by_protoc(names: &[&str], roots: &[PathBuf], edition_file: &str) -> Result<Vec<u8>, FilesError> {
    let failed = |why: String| FilesError::Protoc { file: edition_file.to_owned(), why };
    let directory =
        tempfile::tempdir().map_err(|error| failed(format!("; no temporary directory: {error}")))?;
    let set = directory.path().join("set");
    let mut command = Command::new("protoc");
    for root in roots {
        command.arg("-I").arg(root);
    }
    let output =
        command.arg("--include_imports").arg("-o").arg(&set).args(names).output().map_err(|error| {
            failed(format!(", and protoc does not start: {error}; or give a descriptor set"))
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let mut errors = said.lines().filter(|line| !line.contains("WARNING"));
        let first = errors.next().unwrap_or("nothing").trim().to_owned();
        let more = match errors.count() {
            0 => String::new(),
            more => format!(" (and {more} lines more)"),
        };
        // Editions came with protoc 27.
        return Err(failed(format!(" of 27 or later, and this one says: {first}{more}")));
    }
    fs::read(&set).map_err(|error| FilesError::Read { file: set, error })
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
