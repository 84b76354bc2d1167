//! The command line, read word by word: there are too few flags for a parser that takes longer to compile than the
//! rest.

use std::collections::VecDeque;

use crate::failure::Result;

/// The words that are left.
pub(crate) struct Arguments {
    words: VecDeque<String>,
}

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
    pub(crate) fn value(&mut self, name: &str) -> Result<Option<String>> {
        let joined = format!("{name}=");
        let Some(position) = self.words.iter().position(|word| word == name || word.starts_with(&joined))
        else {
            return Ok(None);
        };
        let word = self.words.remove(position).unwrap_or_default();
        if let Some(value) = word.strip_prefix(&joined) {
            return Ok(Some(value.to_owned()));
        }
        self.words.remove(position).map(Some).ok_or_else(|| misuse!("{name} wants a value"))
    }

    /// The words that no one asked for must be none.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.words.pop_front().map_or(Ok(()), |word| Err(misuse!("`{word}` is not understood here")))
    }

    /// The words that are left, as names.
    pub(crate) fn rest(self) -> Vec<String> {
        self.words.into()
    }
}

/// Names that a person gives must be known ones, of peers, say.
pub(crate) fn are_known(what: &str, names: &[impl AsRef<str>], known: &[&str]) -> Result<()> {
    match names.iter().map(AsRef::as_ref).find(|name| !known.contains(name)) {
        Some(unknown) => Err(misuse!("there is no {what} `{unknown}`; the {what}s are {}", known.join(", "))),
        None => Ok(()),
    }
}
