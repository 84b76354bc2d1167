//! The command line, read word by word: it has too few flags to justify the compile time of a parser.

use std::collections::VecDeque;

use crate::failure::Result;

/// The remaining words.
pub(crate) struct Arguments {
    words: VecDeque<String>,
}

impl Arguments {
    pub(crate) fn from_env() -> Self {
        Self { words: std::env::args().skip(1).collect() }
    }

    /// Returns the next word, flag or not.
    pub(crate) fn next_word(&mut self) -> Option<String> {
        self.words.pop_front()
    }

    /// Removes `name` from the words and returns whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let position = self.words.iter().position(|word| word == name);
        position.is_some_and(|position| self.words.remove(position).is_some())
    }

    /// Removes `--name VALUE` or `--name=VALUE` from the words and returns the value.
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
        self.words.remove(position).map(Some).ok_or_else(|| misuse!("missing value of {name}"))
    }

    /// Fails if any word is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.words.pop_front().map_or(Ok(()), |word| Err(misuse!("unexpected argument `{word}`")))
    }

    /// Returns the remaining words.
    pub(crate) fn rest(self) -> Vec<String> {
        self.words.into()
    }
}

/// Checks that all `names` given by the user, for example peers, are known.
pub(crate) fn are_known(what: &str, names: &[impl AsRef<str>], known: &[&str]) -> Result<()> {
    match names.iter().map(AsRef::as_ref).find(|name| !known.contains(name)) {
        Some(unknown) => Err(misuse!("unknown {what} `{unknown}`; use one of {}", known.join(", "))),
        None => Ok(()),
    }
}
