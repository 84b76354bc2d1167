//! Which flags a command line has.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};

/// The flags that were said, with a default or with another value. It takes no flag of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given(Vec<Id>);

impl Given {
    /// Whether the flag of this id was said.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.0.contains(id)
    }
}

#[cfg(test)]
impl From<&Id> for Given {
    fn from(id: &Id) -> Self {
        Self(vec![id.clone()])
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let is_given = |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        self.0 = matches.ids().filter(is_given).cloned().collect();
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
