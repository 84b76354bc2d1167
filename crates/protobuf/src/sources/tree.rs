//! Where the text of files comes from.

use std::io;

/// Gives the text of files by the names that imports have for them.
///
/// A function from a name to its text is one, and [`Folders`](super::Folders) is one for folders on a disk. The files
/// of Protobuf itself, such as `google/protobuf/timestamp.proto`, are not asked for: they are built in.
pub trait SourceTree {
    /// Returns the file that imports call `name`.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) if it is not there, others if it cannot be read.
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
    /// A file that is known by its name alone.
    pub fn new(text: impl Into<String>) -> Self {
        SourceFile { text: text.into(), path: None, identity: None }
    }

    /// Sets the path that errors show.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets what tells the file from others: two names with the same identity are one file, which keeps the name that
    /// it was opened by first. By default each name is a file of its own.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }
}
