//! The order of lists and watches, as a pure function.

use std::time::Duration;

use thalweg_engine::Backoff;

/// The progress of lists and watches.
///
/// ```text
///   list ──version──► watch ──end──► watch from the last version
///    ▲                  │
///    └──── 410 Gone, or another error of the API server
/// ```
#[derive(Debug)]
pub(crate) struct Progress {
    backoff: Backoff,
    /// The version to watch from. `None` before a list.
    version: Option<String>,
    /// Whether a list must have the latest state: the server no longer knows the last version.
    needs_latest: bool,
    /// Failures since a watch that worked.
    failures: u32,
}

/// The next request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// List any state that the API server has in memory, or the latest.
    List { latest: bool },
    /// Watch from this version.
    Watch(String),
}

/// Reason why a list or watch has failed, as far as it changes what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection failed, or the watch ended at once.
    Interrupted,
    /// The API server has forgotten the version: 410.
    Gone,
    /// The API server reported another error, or something that is not understood.
    Refused,
}

impl Progress {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { backoff, version: None, needs_latest: false, failures: 0 }
    }

    pub(crate) fn next(&self) -> Next {
        match &self.version {
            None => Next::List { latest: self.needs_latest },
            Some(version) => Next::Watch(version.clone()),
        }
    }

    /// Notes a list of this version.
    pub(crate) fn listed(&mut self, version: String) {
        (self.version, self.needs_latest) = (Some(version), false);
    }

    /// Notes an event of a watch, with the version after it.
    pub(crate) fn watched(&mut self, version: &str) {
        if !version.is_empty() {
            self.version = Some(version.to_owned());
        }
    }

    /// Notes that a watch has worked, before it ended.
    pub(crate) fn worked(&mut self) {
        self.failures = 0;
    }

    /// Notes a failure. Returns the delay before the next request. `random_unit` is the position in the jitter range.
    pub(crate) fn failed(&mut self, failure: Failure, random_unit: f64) -> Duration {
        match failure {
            Failure::Interrupted => {}
            Failure::Gone => (self.version, self.needs_latest) = (None, true),
            Failure::Refused => self.version = None,
        }
        self.failures = self.failures.saturating_add(1);
        self.backoff.delay(self.failures, random_unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn progress() -> Progress {
        Progress::new(Backoff::default().jitter(0.0).multiplier(2.0).max_delay(SECOND * 5))
    }

    fn watching(version: &str) -> Progress {
        let mut progress = progress();
        progress.listed(version.to_owned());
        progress
    }

    fn watch(version: &str) -> Next {
        Next::Watch(version.to_owned())
    }

    #[test]
    fn a_list_is_followed_by_watches() {
        let mut progress = progress();
        assert_eq!(progress.next(), Next::List { latest: false });
        progress.listed("1".to_owned());
        assert_eq!(progress.next(), watch("1"));
        progress.watched("2");
        progress.watched("");
        assert_eq!(progress.next(), watch("2"));
    }

    #[test]
    fn an_interrupted_watch_continues() {
        let mut progress = watching("1");
        progress.watched("2");
        assert_eq!(progress.failed(Failure::Interrupted, 0.5), SECOND);
        assert_eq!(progress.next(), watch("2"));
    }

    #[test]
    fn after_a_forgotten_version_the_latest_state_is_listed() {
        let mut progress = watching("1");
        assert_eq!(progress.failed(Failure::Gone, 0.5), SECOND);
        assert_eq!(progress.next(), Next::List { latest: true });
        progress.listed("9".to_owned());
        assert_eq!(progress.next(), watch("9"));
        assert_eq!(progress.failed(Failure::Refused, 0.5), SECOND * 2);
        assert_eq!(progress.next(), Next::List { latest: false });
    }

    #[test]
    fn a_refused_watch_is_listed_again_with_backoff() {
        let mut progress = watching("1");
        for delay in [1, 2, 4, 5, 5] {
            assert_eq!(progress.failed(Failure::Refused, 0.5), SECOND * delay);
            assert_eq!(progress.next(), Next::List { latest: false });
            // A list alone is no success: a role may lack the verb `watch`.
            progress.listed("2".to_owned());
        }
    }

    #[test]
    fn a_watch_that_works_resets_the_backoff() {
        let mut progress = watching("1");
        assert_eq!(progress.failed(Failure::Interrupted, 0.5), SECOND);
        progress.watched("2");
        assert_eq!(progress.failed(Failure::Interrupted, 0.5), SECOND * 2);
        progress.worked();
        assert_eq!(progress.failed(Failure::Interrupted, 0.5), SECOND);
    }
}
