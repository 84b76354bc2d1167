//! What can be wrong with the `.proto` files and with the folder that the code goes to.

use std::fmt::{self, Write};
use std::io;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, LabeledSpan};

/// Why nothing was generated.
///
/// `Debug` prints what `Display` does: a build script that returns the error from `main` shows it that way.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A `.proto` file has an error.
    #[error("{0}")]
    Source(Box<SourceError>),
    /// A `.proto` file is not there.
    #[error("{}: no such file", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// A `.proto` file is in none of the include directories, so it has no name for imports.
    #[error(
        "{}: is in none of the include directories ({}); add its folder to them",
        path.display(), list(includes)
    )]
    NotIncluded {
        /// The path as given.
        path: PathBuf,
        /// The include directories as given.
        includes: Vec<PathBuf>,
    },
    /// A descriptor set has a file of an edition other than 2023 and 2024, or has lost what editions say.
    #[error(
        "{file}: unsupported edition; 2023 and 2024 are supported, from sources and by `compile_encoded_fds`"
    )]
    Edition {
        /// The file's name in the descriptor set.
        file: String,
    },
    /// There is nowhere to write to.
    #[error("OUT_DIR is not set: call this from a build script, or set `out_dir`")]
    NoOutDir,
    /// A file or folder that cannot be read or written.
    #[error("{}: cannot {action}: {cause}", path.display())]
    Io {
        /// What was tried: `read`, `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
    /// prost-build or protox failed for a reason of its own, such as one type given two extern paths.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Finds file, line and column of what protox says. `given` is the file being compiled.
    pub(crate) fn from_protox(error: &protox::Error, given: &Path, includes: &[PathBuf]) -> Self {
        let Some(name) = error.file() else {
            return match (error.is_file_not_found(), given.exists()) {
                (true, false) => Error::NotFound { path: given.to_owned() },
                (true, true) => Error::NotIncluded { path: given.to_owned(), includes: includes.to_owned() },
                (false, _) => Error::Other(error.to_string()),
            };
        };
        // protox names files as imports do; an editor wants the path.
        let path = includes.iter().map(|include| include.join(name)).find(|path| path.exists());
        let path = path.unwrap_or_else(|| PathBuf::from(name));
        if error.is_io() {
            let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
            let kind = cause.map_or(io::ErrorKind::Other, io::Error::kind);
            return Error::Io { action: "read", path, cause: kind.into() };
        }
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        let mut first = SourceError::new(path.clone(), &source, error);
        let others = error.related().into_iter().flatten();
        if error.is_file_not_found() {
            first.help =
                Some(format!("imports are looked for in the include directories ({})", list(includes)));
        }
        first.others = others.map(|other| SourceError::new(path.clone(), &source, other)).collect();
        Error::Source(Box::new(first))
    }
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

/// An error in a `.proto` file, with its position and the text there.
///
/// It prints as `proto/greeter.proto:7:3: name 'Nobody' is not defined`, with the line below it.
#[derive(Clone, Debug)]
pub struct SourceError {
    file: PathBuf,
    position: Option<Position>,
    message: String,
    help: Option<String>,
    others: Vec<SourceError>,
}

#[derive(Clone, Debug)]
struct Position {
    /// From 1.
    line: usize,
    /// In characters, from 1.
    column: usize,
    text: String,
    /// Characters to mark, at least 1.
    width: usize,
}

impl SourceError {
    fn new(file: PathBuf, source: &str, error: &dyn Diagnostic) -> Self {
        let message = error.to_string();
        let help = if message.ends_with("found 'edition'") {
            // protox takes the keyword for any other word.
            Some("editions are not supported; declare `syntax = \"proto3\"` or `\"proto2\"`".to_owned())
        } else {
            error.help().map(|help| help.to_string())
        };
        let labels: Vec<LabeledSpan> = error.labels().into_iter().flatten().collect();
        let span = match culprit(&labels) {
            Some(label) => Some((label.offset(), label.len())),
            // protox has no label for the end of the file.
            None if message.ends_with("end of file") => Some((source.trim_end().len(), 0)),
            None => None,
        };
        let position = span.and_then(|(offset, length)| Position::find(source, offset, length));
        SourceError { file, position, message, help, others: Vec::new() }
    }

    /// An error at a line and column from 0, of a file that need not be there.
    pub(crate) fn at(file: PathBuf, start: Option<(usize, usize)>, message: String, help: String) -> Self {
        let source = std::fs::read_to_string(&file).unwrap_or_default();
        let position = start.map(|(line, column)| {
            let text = source.lines().nth(line).unwrap_or_default().to_owned();
            Position { line: line + 1, column: column + 1, text, width: 1 }
        });
        SourceError { file, position, message, help: Some(help), others: Vec::new() }
    }

    pub(crate) fn add(&mut self, others: impl Iterator<Item = SourceError>) {
        self.others.extend(others);
    }

    /// The path of the file: include directory and name.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The line, from 1; none for an error of the whole file, such as a cycle of imports.
    pub fn line(&self) -> Option<usize> {
        self.position.as_ref().map(|position| position.line)
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.position.as_ref().map(|position| position.column)
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Further errors in the same file.
    pub fn others(&self) -> &[SourceError] {
        &self.others
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(Position { line, column, .. }) = self.position {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", self.message)?;
        if let Some(Position { line, column, text, width }) = &self.position {
            let gutter = " ".repeat(line.to_string().len());
            // Tabs keep their width above the mark.
            let indent: String =
                text.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let mark = "^".repeat(*width);
            write!(f, "\n{gutter} |\n{line} | {text}\n{gutter} | {indent}{mark}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  = help: {help}")?;
        }
        self.others.iter().try_for_each(|other| write!(f, "\n{other}"))
    }
}

impl std::error::Error for SourceError {}

impl Position {
    /// The position of the bytes `offset..offset + length`, marked to the end of the line at most.
    fn find(source: &str, offset: usize, length: usize) -> Option<Self> {
        let before = source.get(..offset)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let text = source[line_start..].lines().next().unwrap_or_default();
        let column = before[line_start..].chars().count() + 1;
        let marked = source.get(offset..offset + length).unwrap_or_default();
        let width = marked.lines().next().unwrap_or_default().chars().count().max(1);
        Some(Position { line: before.matches('\n').count() + 1, column, text: text.to_owned(), width })
    }
}

/// The label that is at fault, of those that say what else has to do with it: the second of two that
/// are the same, the number and not the range that it is in.
fn culprit(labels: &[LabeledSpan]) -> Option<&LabeledSpan> {
    let says = |label: &&LabeledSpan, word| label.label().is_some_and(|text| text.contains(word));
    labels
        .iter()
        .find(|label| says(label, "again"))
        .or_else(|| labels.iter().find(|label| !says(label, "range")))
        .or(labels.first())
}

fn list(paths: &[PathBuf]) -> String {
    let mut text = String::new();
    for (index, path) in paths.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}", path.display());
    }
    if text.is_empty() { "none given".to_owned() } else { text }
}
