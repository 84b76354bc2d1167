//! Sources of file text.

use std::io;

/// Provides the text of files by their names in imports.
///
/// Implemented by functions from a name to its text, and by [`Folders`](super::Folders) for folders on a disk.
/// Protobuf's own files, such as `google/protobuf/timestamp.proto`, are built in and never requested.
pub trait SourceTree {
    /// Returns the file that imports call `name`.
    ///
    /// # Errors
    ///
    /// Returns [`NotFound`](io::ErrorKind::NotFound) if it does not exist, or another error if it cannot be read.
    fn open(&self, name: &str) -> io::Result<SourceFile>;
}

impl<F: Fn(&str) -> Option<String>> SourceTree for F {
    fn open(&self, name: &str) -> io::Result<SourceFile> {
        self(name).map(SourceFile::new).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The text of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    pub(super) text: String,
    pub(super) path: Option<String>,
    pub(super) identity: Option<String>,
}

impl SourceFile {
    /// Creates a file that is identified only by its name.
    pub fn new(text: impl Into<String>) -> Self {
        SourceFile { text: text.into(), path: None, identity: None }
    }

    /// Sets the path shown in errors.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the identity of the file: names with the same identity refer to one file, which keeps the name under which
    /// it was first opened. By default each name is a distinct file.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }
}
