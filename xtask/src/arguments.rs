//! The command line, read word by word: there are too few flags for a parser that takes longer to compile than the
//! rest.

use std::collections::VecDeque;

/// The words that are left.
pub(crate) struct Arguments {
    words: VecDeque<String>,
}

/// The command line makes no sense: the message says which part.
pub(crate) struct Misuse(pub(crate) String);

impl Arguments {
    pub(crate) fn from_env() -> Self {
        Self { words: std::env::args().skip(1).collect() }
    }

    /// The next word, whatever it is.
    pub(crate) fn next_word(&mut self) -> Option<String> {
        self.words.pop_front()
    }

    /// Whether `name` is among the words; it is taken out.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let position = self.words.iter().position(|word| word == name);
        position.is_some_and(|position| self.words.remove(position).is_some())
    }

    /// The value of `--name VALUE` or `--name=VALUE`; both words are taken out.
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>, Misuse> {
        let joined = format!("{name}=");
        let Some(position) = self.words.iter().position(|word| word == name || word.starts_with(&joined))
        else {
            return Ok(None);
        };
        let word = self.words.remove(position).unwrap_or_default();
        if let Some(value) = word.strip_prefix(&joined) {
            return Ok(Some(value.to_owned()));
        }
        match self.words.remove(position) {
            Some(value) => Ok(Some(value)),
            None => Err(Misuse(format!("{name} wants a value"))),
        }
    }

    /// The words that no one asked for must be none.
    pub(crate) fn finish(mut self) -> Result<(), Misuse> {
        match self.words.pop_front() {
            Some(word) => Err(Misuse(format!("`{word}` is not understood here"))),
            None => Ok(()),
        }
    }

    /// The words that are left, as names.
    pub(crate) fn rest(self) -> Vec<String> {
        self.words.into()
    }
}
