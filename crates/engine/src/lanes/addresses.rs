//! The addresses of a target, tried one after the other.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::target::Target;
use crate::net::Endpoint;
use crate::status::Status;

/// Where to connect to, and how long all of it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses<'a> {
    pub(super) target: &'a Target,
    pub(super) timeout: Duration,
}

impl Addresses<'_> {
    /// What `attempt` makes of the first address that it does not fail at. `resolved` is told of a name that was
    /// resolved, and `note` of how each attempt ended.
    pub(super) async fn first_to_connect<T, F>(
        &self,
        attempt: impl Fn(Endpoint, Step) -> F,
        resolved: impl FnOnce(),
        note: impl Fn(Result<T, Status>) -> Result<T, Status>,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let deadline = Instant::now() + self.timeout;
        let endpoints = match timeout_at(deadline, self.target.resolve()).await {
            Ok(Ok(endpoints)) => endpoints,
            Ok(Err(error)) => {
                return Err(Status::unavailable(format!(
                    "can't resolve {}: {error} (is the name right, and has it an address?)",
                    self.target
                )));
            }
            Err(_) => return Err(self.timed_out("its name was being resolved")),
        };
        if self.target.is_name() {
            resolved();
        }
        let mut failures = Vec::new();
        let count = endpoints.len() as u32;
        for (tried, endpoint) in (0..).zip(endpoints) {
            // Of 20 s and two addresses, the first gets 10 s: one that is silent must not use up the time of the
            // others.
            let share = deadline.saturating_duration_since(Instant::now()) / (count - tried);
            let step = Step::default();
            let outcome = timeout(share, attempt(endpoint.clone(), step.clone())).await;
            let outcome = outcome.unwrap_or_else(|_| Err(self.timed_out(&step.missing(&endpoint))));
            match note(outcome) {
                Ok(connected) => return Ok(connected),
                Err(status) => failures.push(status),
            }
        }
        Err(failed_all(self.target, &failures))
    }

    pub(super) fn timed_out(&self, when: &str) -> Status {
        Status::unavailable(format!("no connection to {} within {:?}: {when}", self.target, self.timeout))
    }
}

/// How far an attempt to connect to one address is, for those who give it up.
#[derive(Clone, Default)]
pub(crate) struct Step(Arc<AtomicU8>);

impl Step {
    const CONNECTING: u8 = 0;
    #[cfg(feature = "tls")]
    pub(super) const SHAKING_HANDS: u8 = 1;
    #[cfg(feature = "tls")]
    pub(super) const SETTINGS_OVER_TLS: u8 = 2;
    pub(super) const SETTINGS: u8 = 3;

    pub(super) fn set(&self, step: u8) {
        self.0.store(step, Ordering::Relaxed);
    }

    /// What was not done at `peer`.
    pub(super) fn missing(&self, peer: &impl fmt::Display) -> String {
        match self.0.load(Ordering::Relaxed) {
            Self::CONNECTING => format!("{peer} had not accepted it"),
            #[cfg(feature = "tls")]
            Self::SHAKING_HANDS => {
                format!("{peer} had not finished the TLS handshake (does it speak TLS at this port?)")
            }
            #[cfg(feature = "tls")]
            Self::SETTINGS_OVER_TLS => {
                format!("{peer} had not sent its HTTP/2 SETTINGS (is it a gRPC server?)")
            }
            _ => format!("{peer} had not sent its HTTP/2 SETTINGS (is it a gRPC server, and without TLS?)"),
        }
    }
}

/// How many addresses are named that could not be connected to.
const FAILURES_NAMED_MAX: usize = 4;

/// Why none of several addresses would do.
fn failed_all(target: &Target, failures: &[Status]) -> Status {
    match failures {
        [] => Status::unavailable(format!("{target} has no address")),
        [only] => only.clone(),
        failures => {
            let named: Vec<&str> = failures.iter().take(FAILURES_NAMED_MAX).map(Status::message).collect();
            let more = match failures.len() - named.len() {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let (count, named) = (failures.len(), named.join("; "));
            Status::unavailable(format!("none of {count} addresses of {target} would do: {named}{more}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_addresses_four_are_named() {
        let target = Target::parse("somewhere:1").expect("a target");
        let failures: Vec<Status> =
            (1..=6).map(|number| Status::unavailable(format!("no {number}"))).collect();
        let check = |count: usize, expected: &str| {
            assert_eq!(failed_all(&target, &failures[..count]).message(), expected);
        };
        check(0, "somewhere:1 has no address");
        check(1, "no 1");
        check(2, "none of 2 addresses of somewhere:1 would do: no 1; no 2");
        check(6, "none of 6 addresses of somewhere:1 would do: no 1; no 2; no 3; no 4; and 2 more");
    }
}
