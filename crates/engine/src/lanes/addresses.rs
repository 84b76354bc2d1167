//! Connecting to a target's addresses: the first to connect wins.
//!
//! An attempt starts when the previous one has failed, or when its peer has not responded for [`ATTEMPT_DELAY`] (Happy
//! Eyeballs, RFC 8305 §5). So an address that drops packets costs only this delay. A peer that is slow after accepting
//! the connection has its share of the connect timeout.

use std::fmt;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Timeout, sleep_until, timeout, timeout_at};

use super::target::Target;
use crate::net::{Endpoint, TcpOptions};
use crate::status::Status;

/// The target to connect to, and the timeout for the whole attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses<'a> {
    pub(super) target: &'a Target,
    pub(super) timeout: Duration,
}

impl Addresses<'_> {
    /// Attempts the addresses that `tcp` permits, and returns the first success. Calls `resolved` when a name was
    /// resolved, and `note` when an attempt has ended.
    pub(super) async fn first_to_connect<T, F>(
        &self,
        tcp: &TcpOptions,
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
                    "failed to resolve {}: {error} (check the name and its DNS records)",
                    self.target
                )));
            }
            Err(_) => return Err(self.timed_out("while resolving its name")),
        };
        if self.target.is_name() {
            resolved();
        }
        let endpoints = reachable(endpoints, tcp).map_err(|local| self.out_of_reach(local))?;
        let mut waiting = endpoints.into_iter();
        let (mut running, mut failures) = (Running(Vec::new()), Vec::new());
        for number in 0.. {
            let left = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
            if let Some(endpoint) = waiting.next() {
                // With 20 s and two addresses, the first gets 10 s.
                let share = deadline.saturating_duration_since(Instant::now()) / left;
                let step = Step::default();
                let future = Box::pin(timeout(share, attempt(endpoint.clone(), step.clone())));
                running.0.push(Attempt { number, endpoint, step, future });
            } else if running.0.is_empty() {
                break;
            }
            let Some((attempt, outcome)) = running.ended_or_due(waiting.len() > 0).await else { continue };
            let outcome = outcome.unwrap_or_else(|| Err(self.timed_out(&attempt.missing())));
            match note(outcome) {
                Ok(connected) => return Ok(connected),
                Err(status) => failures.push((attempt.number, status)),
            }
        }
        failures.sort_by_key(|(number, _)| *number);
        let failures: Vec<_> = failures.into_iter().map(|(_, status)| status).collect();
        Err(failed_all(self.target, &failures))
    }

    fn out_of_reach(&self, local: IpAddr) -> Status {
        let (version, other) = if local.is_ipv4() { (4, 6) } else { (6, 4) };
        Status::unavailable(format!(
            "{} has no IPv{version} address to connect to from {local}; use a local IPv{other} address",
            self.target
        ))
    }

    pub(super) fn timed_out(&self, when: &str) -> Status {
        Status::unavailable(format!("no connection to {} within {:?}: {when}", self.target, self.timeout))
    }
}

/// Time to wait for an attempt's peer before the next attempt starts, as recommended by RFC 8305 §8.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Returns the addresses that are reachable from the local address; `Err` if there are none.
fn reachable(endpoints: Vec<Endpoint>, tcp: &TcpOptions) -> Result<Vec<Endpoint>, IpAddr> {
    let Some(local) = tcp.local_address else { return Ok(endpoints) };
    let is_reachable = |endpoint: &Endpoint| match endpoint {
        Endpoint::Tcp(address) => address.is_ipv4() == local.is_ipv4(),
        Endpoint::Unix(_) | Endpoint::UnixAbstract(_) => true,
    };
    let reachable: Vec<_> = endpoints.into_iter().filter(is_reachable).collect();
    if reachable.is_empty() { Err(local) } else { Ok(reachable) }
}

/// An attempt to connect to one address.
struct Attempt<F> {
    /// Position in the order of the addresses.
    number: usize,
    endpoint: Endpoint,
    step: Step,
    future: Pin<Box<Timeout<F>>>,
}

impl<F> Attempt<F> {
    fn missing(&self) -> String {
        self.step.missing(&self.endpoint)
    }
}

/// The attempts in progress.
struct Running<F>(Vec<Attempt<F>>);

impl<F: Future> Running<F> {
    /// Waits until an attempt has ended, and returns it with its outcome, which is `None` after a timeout. If there is
    /// a `next` one, returns `None` as soon as that is due because the last attempt's peer has not responded.
    async fn ended_or_due(&mut self, next: bool) -> Option<(Attempt<F>, Option<F::Output>)> {
        let mut due_at = Instant::now() + ATTEMPT_DELAY;
        loop {
            tokio::select! {
                biased;
                ended = poll_fn(|cx| self.poll_ended(cx)) => return Some(ended),
                () = sleep_until(due_at), if next => {
                    if self.0.last().is_none_or(|attempt| attempt.step.is_connecting()) {
                        return None;
                    }
                    due_at += ATTEMPT_DELAY;
                }
            }
        }
    }

    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<(Attempt<F>, Option<F::Output>)> {
        for index in 0..self.0.len() {
            if let Poll::Ready(outcome) = self.0[index].future.as_mut().poll(cx) {
                return Poll::Ready((self.0.remove(index), outcome.ok()));
            }
        }
        Poll::Pending
    }
}

/// Progress of an attempt to connect to one address, for timeout messages.
#[derive(Clone, Default)]
pub(crate) struct Step(Arc<AtomicU8>);

impl Step {
    const CONNECTING: u8 = 0;
    pub(super) const CONNECTED: u8 = 1;
    #[cfg(feature = "tls")]
    pub(super) const SHAKING_HANDS: u8 = 2;
    #[cfg(feature = "tls")]
    pub(super) const SETTINGS_OVER_TLS: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;

    pub(super) fn set(&self, step: u8) {
        self.0.store(step, Ordering::Relaxed);
    }

    /// Returns whether the peer has not responded yet.
    fn is_connecting(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::CONNECTING
    }

    /// Returns which step is missing at `peer`.
    pub(super) fn missing(&self, peer: &impl fmt::Display) -> String {
        match self.0.load(Ordering::Relaxed) {
            Self::CONNECTING => format!("{peer} had not accepted it"),
            #[cfg(feature = "tls")]
            Self::SHAKING_HANDS => {
                format!("{peer} had not finished the TLS handshake (check that it uses TLS at this port)")
            }
            #[cfg(feature = "tls")]
            Self::SETTINGS_OVER_TLS => {
                format!("{peer} had not sent its HTTP/2 SETTINGS (check that it is a gRPC server)")
            }
            _ => format!(
                "{peer} had not sent its HTTP/2 SETTINGS (check that it is a gRPC server without TLS)"
            ),
        }
    }
}

/// Maximum number of failed addresses that are named.
const FAILURES_NAMED_MAX: usize = 4;

/// Returns the error for a target none of whose addresses could be connected to.
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
            Status::unavailable(format!(
                "failed to connect to any of {count} addresses of {target}: {named}{more}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_four_of_many_addresses() {
        let target = Target::parse("somewhere:1").expect("a target");
        let failures: Vec<Status> =
            (1..=6).map(|number| Status::unavailable(format!("no {number}"))).collect();
        let check = |count: usize, expected: &str| {
            assert_eq!(failed_all(&target, &failures[..count]).message(), expected);
        };
        check(0, "somewhere:1 has no address");
        check(1, "no 1");
        check(2, "failed to connect to any of 2 addresses of somewhere:1: no 1; no 2");
        check(
            6,
            "failed to connect to any of 6 addresses of somewhere:1: no 1; no 2; no 3; no 4; and 2 more",
        );
    }
}
