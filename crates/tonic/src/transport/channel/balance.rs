//! Several endpoints behind one channel.

use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use thalweg_engine::policy::{
    Decision, EndpointView, LeastRequestConfig, NoneReady, Policy, PolicyConfig, PolicyFactory,
};
use thalweg_engine::{
    Channel, ChannelConfig, ConnectivityState, Endpoint as EngineEndpoint, Resolution, ResolveError,
    Resolver, Resolving,
};
use tokio::sync::mpsc::Receiver;

use super::endpoint::Endpoint;
use super::rate_limit::RateLimited;
use crate::transport::error::Error;
use crate::transport::timeout::EndpointTimeouts;

/// A change to the endpoints of a channel.
#[derive(Clone, Debug)]
pub enum Change<K, V> {
    /// Adds an endpoint under this key, replacing any other.
    Insert(K, V),
    /// Removes the endpoint under this key.
    Remove(K),
}

/// Creates a channel that balances calls over the endpoints from `changes`: of two random endpoints that are connected,
/// the one with fewer calls in flight takes a call. Calls wait while there are no endpoints. Returns whether endpoints
/// have timeouts, too.
///
/// `name` is the channel's in messages.
pub(super) fn balance<K>(
    changes: Receiver<Change<K, Endpoint>>,
    name: &str,
) -> Result<(Channel, EndpointTimeouts), Error>
where
    K: Hash + Eq + Send + Clone + 'static,
{
    let timeouts = EndpointTimeouts::default();
    let members =
        Members { changes: Some(changes), list: Vec::new(), version: 0, timeouts: timeouts.clone() };
    let mut config = ChannelConfig::default();
    config.name = Some(name.to_owned());
    config.load_balancing = PolicyConfig::Custom(Arc::new(LeastOfTwo));
    config.set_resolver(MemberResolver(Mutex::new(members)));
    let channel = Channel::new(TARGET, config).map_err(Error::transport)?;
    Ok((channel, timeouts))
}

/// A valid target. Each endpoint has its own `:authority`.
const TARGET: &str = "passthrough:///balanced:80";
/// Maximum number of endpoints that a name lists.
const NAMED_MAX: usize = 4;

/// Returns the name of a channel over endpoints with these keys.
pub(super) fn name_of(keys: impl ExactSizeIterator<Item = String>) -> String {
    let more = keys.len().saturating_sub(NAMED_MAX);
    let named: Vec<String> = keys.take(NAMED_MAX).map(|key| key.trim_end_matches('/').to_owned()).collect();
    match (named.is_empty(), more) {
        (true, _) => "an empty list of endpoints".to_owned(),
        (false, 0) => named.join(", "),
        (false, more) => format!("{} and {more} more", named.join(", ")),
    }
}

/// Resolves to the endpoints that the application has inserted.
struct MemberResolver<K>(Mutex<Members<K>>);

struct Members<K> {
    /// `None` once all senders are dropped: the endpoints can no longer change.
    changes: Option<Receiver<Change<K, Endpoint>>>,
    list: Vec<Member<K>>,
    version: u64,
    timeouts: EndpointTimeouts,
}

struct Member<K> {
    key: K,
    has_timeout: bool,
    /// The error of an endpoint that cannot be connected to.
    endpoint: Result<EngineEndpoint, String>,
}

impl<K: Hash + Eq> Members<K> {
    /// Applies all changes that are available.
    fn poll_changes(&mut self, cx: &mut Context<'_>) {
        while let Some(changes) = &mut self.changes {
            match changes.poll_recv(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => self.changes = None,
                Poll::Ready(Some(change)) => self.apply(change),
            }
        }
    }

    fn apply(&mut self, change: Change<K, Endpoint>) {
        self.version += 1;
        match change {
            Change::Remove(key) => self.list.retain(|member| member.key != key),
            Change::Insert(key, endpoint) => {
                let has_timeout = endpoint.limits().timeout.is_some();
                let endpoint = endpoint.member();
                if let Err(error) = &endpoint {
                    tracing::warn!(%error, "an endpoint of a balanced channel is invalid");
                }
                let member = Member { key, has_timeout, endpoint };
                match self.list.iter_mut().find(|other| other.key == member.key) {
                    Some(other) => *other = member,
                    None => self.list.push(member),
                }
            }
        }
        // Calls of an empty list wait for endpoints that may have one.
        let may_apply = self.list.is_empty() || self.list.iter().any(|member| member.has_timeout);
        self.timeouts.set(may_apply);
    }

    fn resolution(&self) -> Result<Resolution, ResolveError> {
        let endpoints: Vec<_> =
            self.list.iter().filter_map(|member| member.endpoint.as_ref().ok()).cloned().collect();
        match self.list.iter().find_map(|member| member.endpoint.as_ref().err()) {
            Some(error) if endpoints.is_empty() => Err(ResolveError::new(error.clone())),
            _ => {
                let mut resolution = Resolution::new(endpoints);
                resolution.version = self.version;
                Ok(resolution)
            }
        }
    }
}

impl<K> MemberResolver<K> {
    fn members(&self) -> MutexGuard<'_, Members<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Send + 'static> Resolver for MemberResolver<K> {
    fn resolve(&self) -> Resolving<'_> {
        Box::pin(poll_fn(|cx| {
            let mut members = self.members();
            members.poll_changes(cx);
            Poll::Ready(members.resolution())
        }))
    }

    fn looks_up(&self) -> bool {
        false
    }

    fn changed(&self, version: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(poll_fn(move |cx| {
            let mut members = self.members();
            members.poll_changes(cx);
            if members.version == version { Poll::Pending } else { Poll::Ready(()) }
        }))
    }
}

impl<K> fmt::Debug for MemberResolver<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberResolver").field("endpoints", &self.members().list.len()).finish()
    }
}

/// tonic's policy: gRPC's `least_request` with two choices. Calls wait while there are no endpoints.
#[derive(Debug)]
struct LeastOfTwo;

impl PolicyFactory for LeastOfTwo {
    fn name(&self) -> &'static str {
        "least_of_two"
    }

    fn build(&self, seed: u64) -> Box<dyn Policy> {
        let policy = PolicyConfig::LeastRequest(LeastRequestConfig::default()).build(seed);
        Box::new(WaitWhileEmpty(RateLimited(policy)))
    }
}

#[derive(Debug)]
struct WaitWhileEmpty(RateLimited);

impl Policy for WaitWhileEmpty {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], now: Instant) -> Decision {
        if endpoints.is_empty() {
            return Decision::new(Arc::new(NoneReady::waiting()), ConnectivityState::Idle);
        }
        self.0.decide(endpoints, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_list_a_few_endpoints() {
        let check = |keys: &[&str], expected: &str| {
            let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
            assert_eq!(name_of(keys.into_iter()), expected);
        };
        check(&[], "an empty list of endpoints");
        check(&["http://a:1/"], "http://a:1");
        check(&["http://a:1/", "unix:b"], "http://a:1, unix:b");
        check(&["a", "b", "c", "d", "e", "f"], "a, b, c, d and 2 more");
    }
}
