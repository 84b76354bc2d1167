//! Errors during parsing.

use thalweg_protobuf::json::ParseError;
use thalweg_protobuf::printable::excerpt;

/// An error without line and path yet; each enclosing field adds its step to the path. Boxed, because every function
/// of the parser can return one but rarely does.
#[derive(Debug)]
pub(super) struct LocatedError(Box<Details>);

#[derive(Debug)]
struct Details {
    at: usize,
    problem: String,
    /// `.name` or `[3]`, innermost first.
    steps: Vec<String>,
    is_too_long: bool,
}

/// Maximum number of path steps. Longer paths lose their outer end, since they are for people.
const STEPS_MAX: usize = 32;

impl LocatedError {
    #[cold]
    pub(super) fn new(at: usize, problem: impl Into<String>) -> Self {
        Self(Box::new(Details { at, problem: problem.into(), steps: Vec::new(), is_too_long: false }))
    }

    /// Creates an error for a message that would exceed `max` bytes.
    #[cold]
    pub(super) fn too_long(at: usize, max: usize) -> Self {
        let mut error = Self::new(at, format!("the message is longer than {max} bytes"));
        error.0.is_too_long = true;
        error
    }

    #[cold]
    pub(super) fn in_field(self, name: &str) -> Self {
        self.step(format!(".{}", excerpt(name)))
    }

    #[cold]
    pub(super) fn in_element(self, index: usize) -> Self {
        self.step(format!("[{index}]"))
    }

    fn step(mut self, step: String) -> Self {
        if self.0.steps.len() < STEPS_MAX {
            self.0.steps.push(step);
        }
        self
    }

    pub(super) fn locate(self, text: &[u8]) -> ParseError {
        let Details { at, problem, steps, is_too_long } = *self.0;
        let path: String = steps.into_iter().rev().collect();
        let path = path.strip_prefix('.').unwrap_or(&path).to_owned();
        ParseError { path, is_too_long, ..ParseError::new(text, at, problem) }
    }
}
