//! Connecting to a list of addresses: the first to connect wins.
//!
//! An attempt starts when the previous one has failed, or after [`ATTEMPT_DELAY`] without a connection (Happy Eyeballs,
//! RFC 8305 §5 and gRFC A61). So an address that drops packets, or accepts and stays silent, costs only this delay.

use std::fmt;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use thalweg_balance::Address;
use tokio::time::{Instant, Timeout, sleep_until, timeout_at};

use super::target::Target;
use crate::bounded_time::bounded;
use crate::net::TcpOptions;
use crate::proxy::Proxy;
use crate::resolver::AddressSource;
use crate::status::{Code, Status};

/// The addresses to connect to, and the timeout for the whole attempt.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The channel's target, for messages.
    pub(crate) target: Target,
    pub(crate) source: AddressSource,
    pub(crate) timeout: Duration,
    /// The proxy that connects to them, which looks up names, too.
    proxy: Option<Arc<str>>,
    /// The address of the last connection; it is tried first.
    last: Mutex<Option<Address>>,
    /// Number of addresses at the last attempt.
    count: AtomicUsize,
}

impl Addresses {
    pub(crate) fn new(target: Target, source: AddressSource, timeout: Duration) -> Self {
        let (last, count) = (Mutex::default(), AtomicUsize::default());
        Self { target, source, timeout: bounded(timeout), proxy: None, last, count }
    }

    /// Returns the addresses of an endpoint, separated by commas, or else the target.
    pub(super) fn name(&self) -> String {
        match &self.source {
            AddressSource::Endpoint(endpoint) => {
                endpoint.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            }
            AddressSource::Resolver { .. } => self.target.to_string(),
        }
    }

    /// Returns the number of addresses at the last attempt to connect; 0 before it.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Lets a proxy connect to them.
    pub(crate) fn through(mut self, proxy: Option<&Proxy>) -> Self {
        self.proxy = proxy.map(|proxy| proxy.to_string().into());
        self
    }

    /// Returns other addresses of the same target.
    pub(super) fn to(&self, source: AddressSource) -> Self {
        Self { proxy: self.proxy.clone(), ..Self::new(self.target.clone(), source, self.timeout) }
    }

    /// Attempts the addresses that `tcp` permits, and returns the first success. Calls `resolved` when a name was
    /// resolved, and `note` when an attempt has ended.
    pub(super) async fn first_to_connect<T, F>(
        &self,
        tcp: Option<&TcpOptions>,
        attempt: impl Fn(Address, Step) -> F,
        resolved: impl FnOnce(),
        note: impl Fn(Result<T, Status>) -> Result<T, Status>,
    ) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let deadline = Instant::now() + self.timeout;
        let looks_up = self.proxy.is_none();
        let addresses = match timeout_at(deadline, self.source.addresses(looks_up)).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => {
                return Err(Status::local(
                    Code::Unavailable,
                    format!("failed to resolve {}: {error}", self.target),
                ));
            }
            Err(_) => return Err(self.timed_out("while resolving its name")),
        };
        if self.source.resolves_names() {
            resolved();
        }
        // From where the proxy connects is not known.
        let tcp = tcp.filter(|_| looks_up);
        self.count.store(addresses.len(), Ordering::Relaxed);
        let addresses = reachable(addresses, tcp).map_err(|local| self.out_of_reach(local))?;
        let mut waiting = self.last_first(addresses).into_iter();
        let (mut running, mut failures) = (Running(Vec::new()), Vec::new());
        for number in 0.. {
            if let Some(address) = waiting.next() {
                let step = Step::new(self.proxy.clone());
                let future = Box::pin(timeout_at(deadline, attempt(address.clone(), step.clone())));
                running.0.push(Attempt { number, address, step, future });
            } else if running.0.is_empty() {
                break;
            }
            let Some((attempt, outcome)) = running.ended_or_due(waiting.len() > 0).await else { continue };
            let outcome = outcome.unwrap_or_else(|| Err(self.timed_out(&attempt.missing())));
            match note(outcome) {
                Ok(connected) => {
                    *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(attempt.address);
                    return Ok(connected);
                }
                Err(status) => failures.push((attempt.number, status)),
            }
        }
        failures.sort_by_key(|(number, _)| *number);
        let failures: Vec<_> = failures.into_iter().map(|(_, status)| status).collect();
        Err(failed_all(&self.name(), &failures))
    }

    /// Moves the address that worked last to the front.
    fn last_first(&self, mut addresses: Vec<Address>) -> Vec<Address> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = addresses.iter().position(|address| Some(address) == last.as_ref()) {
            addresses[..=at].rotate_right(1);
        }
        addresses
    }

    fn out_of_reach(&self, local: IpAddr) -> Status {
        let (version, other) = if local.is_ipv4() { (4, 6) } else { (6, 4) };
        Status::local(
            Code::Unavailable,
            format!(
                "{} has no IPv{version} address to connect to from {local}; use a local IPv{other} address",
                self.name()
            ),
        )
    }

    pub(super) fn timed_out(&self, when: &str) -> Status {
        Status::local(
            Code::Unavailable,
            format!("no connection to {} within {:?}: {when}", self.name(), self.timeout),
        )
    }
}

/// Time without a connection after which the next attempt starts, as recommended by RFC 8305 §8.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Returns the addresses that are reachable from the local address; `Err` if there are none.
fn reachable(addresses: Vec<Address>, tcp: Option<&TcpOptions>) -> Result<Vec<Address>, IpAddr> {
    let Some(local) = tcp.and_then(|tcp| tcp.local_address) else { return Ok(addresses) };
    let is_reachable = |address: &Address| match address {
        Address::Tcp(address) => address.is_ipv4() == local.is_ipv4(),
        Address::Unix(_) | Address::UnixAbstract(_) | Address::Name(_) => true,
    };
    let reachable: Vec<_> = addresses.into_iter().filter(is_reachable).collect();
    if reachable.is_empty() { Err(local) } else { Ok(reachable) }
}

/// An attempt to connect to one address.
struct Attempt<F> {
    /// Position in the order of the addresses.
    number: usize,
    address: Address,
    step: Step,
    future: Pin<Box<Timeout<F>>>,
}

impl<F> Attempt<F> {
    fn missing(&self) -> String {
        self.step.missing(&self.address)
    }
}

/// The attempts in progress.
struct Running<F>(Vec<Attempt<F>>);

impl<F: Future> Running<F> {
    /// Waits until an attempt has ended, and returns it with its outcome, which is `None` after a timeout. If there is
    /// a `next` one, returns `None` as soon as that is due.
    async fn ended_or_due(&mut self, next: bool) -> Option<(Attempt<F>, Option<F::Output>)> {
        let due_at = Instant::now() + ATTEMPT_DELAY;
        tokio::select! {
            biased;
            ended = poll_fn(|cx| self.poll_ended(cx)) => Some(ended),
            () = sleep_until(due_at), if next => None,
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
pub(crate) struct Step {
    at: Arc<AtomicU8>,
    proxy: Option<Arc<str>>,
}

impl Step {
    const CONNECTING: u8 = 0;
    pub(super) const CONNECTED: u8 = 1;
    #[cfg(feature = "tls")]
    pub(super) const SHAKING_HANDS: u8 = 2;
    #[cfg(feature = "tls")]
    pub(super) const SETTINGS_OVER_TLS: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;

    fn new(proxy: Option<Arc<str>>) -> Self {
        Self { proxy, ..Self::default() }
    }

    pub(super) fn set(&self, step: u8) {
        self.at.store(step, Ordering::Relaxed);
    }

    /// Returns which step is missing at `peer`.
    pub(super) fn missing(&self, peer: &impl fmt::Display) -> String {
        match (self.at.load(Ordering::Relaxed), &self.proxy) {
            (Self::CONNECTING, None) => format!("{peer} had not accepted it"),
            (Self::CONNECTING, Some(proxy)) => format!("the proxy {proxy} had not connected it to {peer}"),
            #[cfg(feature = "tls")]
            (Self::SHAKING_HANDS, _) => {
                format!("{peer} had not finished the TLS handshake (check that it uses TLS at this port)")
            }
            #[cfg(feature = "tls")]
            (Self::SETTINGS_OVER_TLS, _) => {
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
fn failed_all(name: &str, failures: &[Status]) -> Status {
    match failures {
        [] => Status::local(Code::Unavailable, format!("{name} has no address")),
        [only] => only.clone(),
        failures => {
            let named: Vec<&str> = failures.iter().take(FAILURES_NAMED_MAX).map(Status::message).collect();
            let more = match failures.len() - named.len() {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let (count, named) = (failures.len(), named.join("; "));
            Status::local(
                Code::Unavailable,
                format!("failed to connect to any of {count} addresses of {name}: {named}{more}"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_four_of_many_addresses() {
        let failures: Vec<Status> =
            (1..=6).map(|number| Status::local(Code::Unavailable, format!("no {number}"))).collect();
        let check = |count: usize, expected: &str| {
            assert_eq!(failed_all("somewhere:1", &failures[..count]).message(), expected);
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
