//! Which service config a channel uses: [`ServiceConfigSelection`].

use super::config::ServiceConfig;
use super::error::ServiceConfigError;

/// The service config of a channel, which its resolver may change (gRFC A21).
#[derive(Clone, Debug, Default)]
pub struct ServiceConfigSelection {
    /// The channel's own one, for resolutions without one.
    default: Option<ServiceConfig>,
    selected: Option<ServiceConfig>,
}

/// The result of a resolution for the service config.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected<'a> {
    /// The config to use from now on.
    pub config: &'a ServiceConfig,
    /// Why the resolver's one was rejected, if it was.
    pub rejected: Option<ServiceConfigError>,
}

impl ServiceConfigSelection {
    /// Creates the state before the first resolution. `default` is the channel's own config, if it has one.
    pub fn new(default: Option<ServiceConfig>) -> Self {
        Self { default, selected: None }
    }

    /// Takes the config that a resolution has found: `None` if it has none.
    ///
    /// - A valid one is used, in place of the channel's own.
    /// - Without one, the channel's own is used, or an empty one.
    /// - After an invalid one, the last one stays. Before any, the channel's own is used.
    ///
    /// # Errors
    /// Returns the error of an invalid config if there is neither a last one nor one of the channel. The resolution has
    /// failed then.
    pub fn resolved(
        &mut self,
        found: Option<Result<ServiceConfig, ServiceConfigError>>,
    ) -> Result<Selected<'_>, ServiceConfigError> {
        let (config, rejected) = match (found, self.selected.take()) {
            (Some(Ok(config)), _) => (config, None),
            (None, _) => (self.default.clone().unwrap_or_default(), None),
            (Some(Err(error)), last) => match last.or_else(|| self.default.clone()) {
                Some(config) => (config, Some(error)),
                None => return Err(error),
            },
        };
        Ok(Selected { config: self.selected.insert(config), rejected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str) -> ServiceConfig {
        ServiceConfig::default().health_check(name)
    }

    fn invalid() -> ServiceConfigError {
        ServiceConfigError::Syntax("x".to_owned())
    }

    /// Checks a sequence of resolutions: a config's name, `-` for none, `!` for an invalid one. Expected is the name of
    /// the config in use, empty for an empty one, with `!` if one was rejected; `failed` for a failed resolution.
    fn check(default: Option<&str>, steps: &[(&str, &str)]) {
        let mut selection = ServiceConfigSelection::new(default.map(config));
        for (number, &(found, expected)) in steps.iter().enumerate() {
            let found = match found {
                "-" => None,
                "!" => Some(Err(invalid())),
                name => Some(Ok(config(name))),
            };
            let used = match selection.resolved(found) {
                Ok(Selected { config, rejected }) => {
                    let name = config.health_check.clone().unwrap_or_default();
                    if rejected.is_some() { format!("!{name}") } else { name }
                }
                Err(error) => {
                    assert_eq!(error, invalid());
                    "failed".to_owned()
                }
            };
            assert_eq!(used, expected, "{default:?}, step {number}");
        }
    }

    #[test]
    fn valid_configs_replace_each_other() {
        check(None, &[("a", "a"), ("b", "b"), ("a", "a")]);
        check(Some("own"), &[("a", "a"), ("b", "b")]);
    }

    #[test]
    fn own_config_is_used_without_one() {
        check(None, &[("-", ""), ("a", "a"), ("-", "")]);
        check(Some("own"), &[("-", "own"), ("a", "a"), ("-", "own")]);
    }

    #[test]
    fn last_config_stays_after_an_invalid_one() {
        check(None, &[("a", "a"), ("!", "!a"), ("!", "!a"), ("b", "b")]);
        // No config is a valid one, too.
        check(None, &[("-", ""), ("!", "!"), ("a", "a")]);
        check(Some("own"), &[("a", "a"), ("!", "!a"), ("-", "own"), ("!", "!own")]);
    }

    #[test]
    fn first_config_must_be_valid_unless_the_channel_has_its_own() {
        check(None, &[("!", "failed"), ("!", "failed"), ("a", "a"), ("!", "!a")]);
        check(None, &[("!", "failed"), ("-", ""), ("!", "!")]);
        check(Some("own"), &[("!", "!own"), ("a", "a"), ("!", "!a")]);
    }
}
