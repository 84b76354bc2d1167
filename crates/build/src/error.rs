//! Errors in `.proto` files and in reading or writing files.

use std::fmt::{self, Write};
use std::io;
use std::path::{Path, PathBuf};

use thalweg_protobuf::sources::{self, Diagnostic};

/// Reason why nothing was generated.
///
/// `Debug` prints the same as `Display`, because a build script that returns the error from `main` prints `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A `.proto` file has an error.
    #[error("{0}")]
    Source(Box<SourceError>),
    /// A `.proto` file does not exist.
    #[error("{}: no such file", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// A `.proto` file is in none of the include directories, so it has no import name.
    #[error(
        "{}: not in any of the include directories ({}); add its folder to them",
        path.display(), list(includes)
    )]
    NotIncluded {
        /// The path as given.
        path: PathBuf,
        /// The include directories as given.
        includes: Vec<PathBuf>,
    },
    /// A descriptor set has a file of an edition other than 2023 and 2024, or has lost the data of editions.
    #[error(
        "{file}: unsupported edition; 2023 and 2024 are supported, from sources and by `compile_encoded_fds`"
    )]
    Edition {
        /// The file's name in the descriptor set.
        file: String,
    },
    /// There is no output folder.
    #[error("OUT_DIR is not set: call this from a build script, or set `out_dir`")]
    NoOutDir,
    /// A file or folder that cannot be read or written.
    #[error("{}: failed to {action}: {cause}", path.display())]
    Io {
        /// The failed action: `read`, `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// prost-build failed for a reason of its own, such as one type given two extern paths.
    #[error("{0}")]
    Other(String),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// For build scripts whose `main` returns `io::Result`.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}

/// The errors in `.proto` files, each with its position and the text there.
///
/// It prints as `proto/greeter.proto:7:3: "Nobody" is not defined`, with the line below it.
#[derive(Clone, Debug)]
pub struct SourceError {
    file: PathBuf,
    first: Diagnostic,
    /// Advice, for example after a missing import.
    help: Option<String>,
    others: Vec<SourceError>,
}

impl SourceError {
    pub(crate) fn new(error: &sources::SourceError, includes: &[PathBuf]) -> Self {
        let one = |diagnostic: &Diagnostic| SourceError {
            file: diagnostic.path().unwrap_or(diagnostic.file()).into(),
            first: diagnostic.clone(),
            help: diagnostic
                .message()
                .ends_with("file not found")
                .then(|| format!("imports are searched in the include directories ({})", list(includes))),
            others: Vec::new(),
        };
        let mut all = error.diagnostics().iter().map(one);
        let mut first = all.next().expect("a SourceError has at least one diagnostic");
        first.others = all.collect();
        first
    }

    /// Returns an error at a 0-based line and column of a file that may not exist.
    pub(crate) fn at(file: PathBuf, start: Option<(usize, usize)>, message: String, help: String) -> Self {
        let source = std::fs::read_to_string(&file).unwrap_or_default();
        let first = Diagnostic::at(file.display().to_string(), &source, start, message);
        SourceError { file, first, help: Some(help), others: Vec::new() }
    }

    pub(crate) fn add(&mut self, others: impl Iterator<Item = SourceError>) {
        self.others.extend(others);
    }

    /// Returns the path of the file: include directory and name.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the 1-based line; `None` for an error of the whole file.
    pub fn line(&self) -> Option<usize> {
        self.first.line()
    }

    /// Returns the 1-based column. It counts bytes, and a tab advances to the next multiple of eight, as in protoc's
    /// errors.
    pub fn column(&self) -> Option<usize> {
        self.first.column()
    }

    /// Returns the error text.
    pub fn message(&self) -> &str {
        self.first.message()
    }

    /// Returns further errors, in the same or other files.
    pub fn others(&self) -> &[SourceError] {
        &self.others
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        if let Some(help) = &self.help {
            write!(f, "\n  = help: {help}")?;
        }
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

impl std::error::Error for SourceError {}

fn list(paths: &[PathBuf]) -> String {
    let mut text = String::new();
    for (index, path) in paths.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}", path.display());
    }
    if text.is_empty() { "none given".to_owned() } else { text }
}
