//! Destinations of results.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use thalweg_measure::replacement::{Replacement, replace};

use crate::failure::Failure;
use crate::terminal::{self, Syntax};

/// A file, pipe or stdout.
///
/// Opening fails early if the path is not writable. A file is replaced atomically when the result is complete. A pipe
/// is opened at once and kept open.
pub(crate) enum OutputFile<'a> {
    Stdout,
    File(&'a Path),
    Pipe(&'a Path, Replacement),
}

impl<'a> OutputFile<'a> {
    /// Opens the path. No path, `-` and `/dev/stdout` mean stdout.
    pub(crate) fn open(path: Option<&'a Path>) -> Result<Self, Failure> {
        let is_stdout = |path: &&Path| matches!(path.to_str(), Some("-" | "/dev/stdout"));
        let Some(path) = path.filter(|path| !is_stdout(path)) else { return Ok(Self::Stdout) };
        match Replacement::of(path) {
            Ok(pipe) if pipe.direct().is_some() => Ok(Self::Pipe(path, pipe)),
            // The replacement is created again with the result, so that a killed program leaves nothing behind.
            Ok(_) => Ok(Self::File(path)),
            Err(error) => Err(Failure::bad_arguments(format!("failed to write {}: {error}", path.display()))),
        }
    }

    /// Opens an additional output file. Errors are failures, not invalid arguments.
    pub(crate) fn additional(path: &'a Path) -> Result<Self, Failure> {
        Self::open(Some(path)).map_err(|failure| Failure::failed(failure.message))
    }

    /// Returns the path of a plain file.
    pub(crate) fn file(&self) -> Option<&'a Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout | Self::Pipe(..) => None,
        }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Writes a text result.
    pub(crate) fn write(&self, syntax: Syntax, text: &str) -> Result<(), Failure> {
        self.write_bytes(syntax.escaped(text).as_bytes())
    }

    /// Writes a binary result.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout => terminal::print_bytes(bytes),
            Self::File(path) => replace(path, bytes).map_err(|error| not_written(path, &error)),
            Self::Pipe(path, pipe) => match pipe.direct().map(|mut pipe| pipe.write_all(bytes)) {
                Some(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written.transpose().map(drop).map_err(|error| not_written(path, &error)),
            },
        }
    }

    /// Returns a writer for a result in pieces. A plain file is replaced at the end, or with `is_live` written piece by
    /// piece.
    pub(crate) fn writer(&self, is_live: bool) -> Result<OutputWriter<'_>, Failure> {
        let stream: Box<dyn Write> = match self {
            Self::Stdout => Box::new(terminal::stdout()),
            Self::Pipe(_, pipe) => match pipe.direct() {
                Some(pipe) => Box::new(BufWriter::new(pipe)),
                None => Box::new(io::sink()),
            },
            Self::File(path) if is_live => {
                let file = File::create(path).map_err(|error| not_written(path, &error))?;
                Box::new(BufWriter::new(file))
            }
            Self::File(path) => {
                let replacement = Replacement::of(path).map_err(|error| not_written(path, &error))?;
                return Ok(OutputWriter::Replaced(BufWriter::new(replacement)));
            }
        };
        Ok(OutputWriter::Stream(stream))
    }
}

/// Writer for a result in pieces. Without [`finish`](Self::finish) a replaced file stays unchanged.
pub(crate) enum OutputWriter<'o> {
    Stream(Box<dyn Write + 'o>),
    Replaced(BufWriter<Replacement>),
}

impl OutputWriter<'_> {
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stream(mut stream) => stream.flush(),
            Self::Replaced(file) => file.into_inner().map_err(io::IntoInnerError::into_error)?.commit(),
        }
    }
}

impl Write for OutputWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.write(bytes),
            Self::Replaced(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.flush(),
            Self::Replaced(file) => file.flush(),
        }
    }
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("failed to write {}: {error}", path.display()))
}
