//! The control of a balanced channel: a task that resolves names, and decides by the channel's policy.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use thalweg_balance::policy::{EndpointView, Needs, NoneReady, Outcomes, Policy, PolicyConfig};
use thalweg_balance::resolving::{Resolving, ResolvingStep};
use thalweg_balance::service_config::ServiceConfigError;
use thalweg_balance::{ConnectivityState, Endpoint};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::configuration::{Configuration, Configured};
use super::views::{View, Views};
use crate::lanes::{ChannelParts, Connector, LaneSet, LaneSetObserver, Lanes};
use crate::random::{random_seed, random_unit};
use crate::registry;
use crate::resolver::{AddressSource, Resolution, ResolveError, Resolver, resolve};
use crate::service_config_source::ServiceConfigSource;

/// Settings of a balanced channel.
#[derive(Debug)]
pub(crate) struct BalancedConfig {
    /// The policy before the first resolution.
    pub(crate) policy: PolicyConfig,
    /// `None` without service configs of the resolver.
    pub(crate) configuration: Option<Configuration>,
    pub(crate) resolver: Arc<dyn Resolver>,
    /// Period of resolutions without a reason, for resolvers that look up names.
    pub(crate) refresh: Option<Duration>,
    /// Minimum time between two resolutions.
    pub(crate) interval_min: Duration,
    /// Time without calls after which the connections are closed.
    pub(crate) idle_timeout: Option<Duration>,
}

/// State of a balanced channel's control, between and during its decisions.
#[derive(Debug)]
pub(super) struct Control {
    policy: Box<dyn Policy>,
    policy_config: PolicyConfig,
    configuration: Option<Configuration>,
    resolver: Arc<dyn Resolver>,
    factory: EndpointFactory,
    signals: Arc<Signals>,
    resolving: Resolving,
    /// Version of the last resolution.
    version: u64,
    entries: Vec<Entry>,
    is_resolving: bool,
    /// Whether a resolution has succeeded.
    is_resolved: bool,
    /// Reason why the last resolution failed.
    error: Option<Arc<str>>,
    idleness: Option<Idleness>,
}

/// Time without calls, after which a channel closes its connections.
#[derive(Debug)]
struct Idleness {
    timeout: Duration,
    /// Number of picks at `since`.
    picks: u64,
    /// Time of the last change of `picks`, or of the last check that found calls in flight.
    since: Instant,
    is_idle: bool,
}

impl Idleness {
    /// Returns whether there was no call for the timeout.
    fn check(&mut self, picks: u64, has_calls: bool, now: Instant) -> bool {
        if has_calls || picks != self.picks {
            (self.picks, self.since) = (picks, now);
        }
        now >= self.since + self.timeout
    }
}

/// An endpoint of the channel.
#[derive(Debug)]
struct Entry {
    id: u64,
    endpoint: Endpoint,
    set: Arc<LaneSet>,
    /// Its state at the last decision.
    state: ConnectivityState,
    /// Time of the last attempt to connect that was started here.
    connected_at: Option<std::time::Instant>,
}

impl Entry {
    /// Connects, unless that was done less than the shortest backoff ago: a server that closes its connections at once
    /// would be connected without pause. Returns when to try again in this case.
    fn connect(&mut self, now: std::time::Instant) -> Option<std::time::Instant> {
        let due_at = self.connected_at.map(|at| at + self.set.backoff_min());
        if due_at.is_some_and(|due_at| due_at > now) {
            return due_at;
        }
        self.connected_at = Some(now);
        self.set.connect();
        None
    }

    fn view<'a>(&'a self, error: Option<&'a String>, needs: Needs) -> EndpointView<'a> {
        let mut view = EndpointView::new(self.id, &self.endpoint, self.state);
        view.error = error.map(String::as_str);
        if needs.outcomes {
            let calls = self.set.calls();
            view.outcomes = Outcomes { succeeded: calls.succeeded, failed: calls.failed };
        }
        view
    }
}

/// Wakes the control.
#[derive(Debug, Default)]
pub(super) struct Signals {
    changed: Notify,
    is_idle: AtomicBool,
}

impl Signals {
    /// Notes that a call waits, which ends the channel's idleness.
    pub(super) fn call_waits(&self) {
        if self.is_idle.load(Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Notes that an endpoint's state may have changed.
    pub(super) fn endpoint_changed(&self) {
        self.changed.notify_one();
    }
}

impl LaneSetObserver for Signals {
    fn changed(&self) {
        self.endpoint_changed();
    }
}

/// Settings of an endpoint in place of its channel's: an attribute of the endpoint.
pub(crate) struct OwnSettings(pub(crate) Box<dyn ConnectorFactory>);

/// Creates the connector of an endpoint with settings of its own.
pub(crate) trait ConnectorFactory: Send + Sync {
    fn lanes(&self) -> &Lanes;

    fn connector(&self, channel: ChannelParts) -> Connector;
}

/// Creates the lanes of endpoints.
#[derive(Debug)]
pub(super) struct EndpointFactory {
    pub(super) lanes: Lanes,
    /// Its addresses are replaced.
    pub(super) connector: Connector,
}

impl EndpointFactory {
    fn create(&self, endpoint: &Endpoint, endpoints: usize, observer: &Arc<Signals>) -> Arc<LaneSet> {
        let (lanes, mut connector) = match endpoint.get::<OwnSettings>() {
            Some(OwnSettings(own)) => (own.lanes(), own.connector(self.connector.channel_parts())),
            None => (&self.lanes, self.connector.to(AddressSource::Endpoint(endpoint.clone()))),
        };
        // The control closes the connections of an idle channel: a policy would connect them again.
        let maintenance = connector.connection.maintenance.without_idle_timeout();
        connector.connection.maintenance = Arc::new(maintenance);
        let observer: Weak<dyn LaneSetObserver> = Arc::<Signals>::downgrade(observer);
        LaneSet::new(&lanes.for_endpoint(endpoints), connector, Some(observer))
    }
}

type ResolutionTask = Pin<Box<dyn Future<Output = Result<Resolution, ResolveError>> + Send>>;

/// Reason to decide again.
enum Event {
    EndpointChanged,
    Resolved(Result<Resolution, ResolveError>),
    ResolverChanged,
    TimePassed,
}

impl Control {
    pub(super) fn new(config: BalancedConfig, factory: EndpointFactory, signals: Arc<Signals>) -> Self {
        let BalancedConfig { policy, configuration, resolver, refresh, interval_min, idle_timeout } = config;
        let refresh = refresh.filter(|_| resolver.looks_up());
        let resolving = Resolving::new().min_interval(interval_min).refresh_period(refresh);
        Self {
            policy: policy.build(random_seed()),
            policy_config: policy,
            configuration,
            resolver,
            factory,
            signals,
            resolving,
            version: 0,
            entries: Vec::new(),
            is_resolving: false,
            is_resolved: false,
            error: None,
            idleness: idle_timeout.map(|timeout| Idleness {
                timeout,
                picks: 0,
                since: Instant::now(),
                is_idle: false,
            }),
        }
    }

    /// Returns the request header whose value the policy hashes, if it does.
    pub(super) fn hash_header(&self) -> Option<&str> {
        self.policy.hash_header()
    }

    /// Returns the runtime for the task: one of the channel's own threads, or the caller's.
    pub(super) fn runtime(&self) -> Option<Handle> {
        match &self.factory.connector.connection.executor {
            Some(executor) => Some(executor.reserve_slot().runtime.clone()),
            None => Handle::try_current().ok(),
        }
    }

    /// Runs until the channel is dropped.
    pub(super) async fn run(&mut self, channel: &Weak<Views>) {
        // A resolution on a runtime that has ended will not complete.
        if self.is_resolving {
            self.resolving.restart();
        }
        let mut resolution: Option<ResolutionTask> = None;
        loop {
            let wake_at = {
                let Some(channel) = channel.upgrade() else { return };
                if self.check_idleness(&channel) { None } else { self.decide(&channel) }
            };
            let is_idle = self.idleness.as_ref().is_some_and(|idleness| idleness.is_idle);
            let resolve_at = match self.resolving.poll(Instant::now().into_std()) {
                // An idle channel needs no addresses.
                ResolvingStep::WaitUntil(_) if is_idle => None,
                ResolvingStep::Resolve => {
                    self.is_resolving = true;
                    resolution = Some(self.resolve());
                    None
                }
                ResolvingStep::WaitUntil(at) => Some(at),
                ResolvingStep::Idle => None,
            };
            let wake_at = [wake_at, resolve_at].into_iter().flatten().min();
            let (signals, resolver) = (Arc::clone(&self.signals), Arc::clone(&self.resolver));
            match next_event(&signals, &*resolver, self.version, &mut resolution, wake_at).await {
                Event::EndpointChanged | Event::TimePassed => {}
                Event::ResolverChanged => self.resolving.restart(),
                Event::Resolved(outcome) => {
                    (resolution, self.is_resolving) = (None, false);
                    let is_ok = self.resolved(outcome);
                    self.resolving.on_result(is_ok, random_unit(), Instant::now().into_std());
                }
            }
        }
    }

    /// Resolves the target, within the time of an attempt to connect.
    fn resolve(&self) -> ResolutionTask {
        let (resolver, limit) = (Arc::clone(&self.resolver), self.factory.connector.addresses.timeout);
        Box::pin(async move {
            let timed_out = |_| Err(ResolveError::new(format!("no answer within {limit:?}")));
            timeout(limit, resolve(&*resolver)).await.unwrap_or_else(timed_out)
        })
    }

    /// Takes over a resolution: its service config, and its endpoints. Keeps the connections of endpoints that it still
    /// has. Returns whether it is of use.
    fn resolved(&mut self, outcome: Result<Resolution, ResolveError>) -> bool {
        let failed = |control: &mut Self, error: &dyn std::fmt::Display| {
            let target = &control.factory.connector.addresses.target;
            tracing::debug!(channel = %target, why = %error, "failed to resolve");
            control.error = Some(format!("failed to resolve {target}: {error}").into());
            false
        };
        let mut resolution = match outcome {
            Ok(resolution) => resolution,
            Err(error) => return failed(self, &error),
        };
        self.version = resolution.version;
        let is_rejected = match self.configure(resolution.service_config.take()) {
            Ok(is_rejected) => is_rejected,
            Err(error) => return failed(self, &error),
        };
        self.error = None;
        self.is_resolved = true;
        let is_ok = !resolution.endpoints.is_empty() && !is_rejected;
        let selected = self.policy.select(resolution.endpoints);
        let mut former = std::mem::take(&mut self.entries);
        for endpoint in &selected {
            if self.entries.iter().any(|entry| entry.endpoint.is_same(endpoint)) {
                continue;
            }
            let kept = former.iter().position(|entry| entry.endpoint.is_same(endpoint));
            let entry = match kept {
                Some(at) => Entry { endpoint: endpoint.clone(), ..former.swap_remove(at) },
                None => Entry {
                    id: registry::next_id(),
                    endpoint: endpoint.clone(),
                    set: self.factory.create(endpoint, selected.len(), &self.signals),
                    state: ConnectivityState::Idle,
                    connected_at: None,
                },
            };
            self.entries.push(entry);
        }
        let target = &self.factory.connector.addresses.target;
        tracing::debug!(channel = %target, endpoints = self.entries.len(), dropped = former.len(), "resolved");
        is_ok
    }

    /// Applies the service config of a resolution. Returns whether it was rejected, and the last one stays.
    fn configure(
        &mut self,
        found: Option<Result<ServiceConfigSource, ServiceConfigError>>,
    ) -> Result<bool, ServiceConfigError> {
        let Some(configuration) = &mut self.configuration else { return Ok(false) };
        let Configured { policy, connections_max, rejected } = configuration.resolved(found)?;
        let target = &self.factory.connector.addresses.target;
        if let Some(error) = &rejected {
            tracing::warn!(channel = %target, why = %error, "rejected a service config; the last one stays");
        }
        if policy != self.policy_config {
            tracing::debug!(channel = %target, ?policy, "changed the balancing policy");
            self.policy = policy.build(random_seed());
            self.policy_config = policy;
        }
        self.factory.lanes.limit(connections_max);
        Ok(rejected.is_some())
    }

    /// Closes the connections of a channel without calls. Returns whether it is idle.
    fn check_idleness(&mut self, channel: &Views) -> bool {
        let Some(idleness) = &mut self.idleness else { return false };
        let has_calls = self.entries.iter().any(|entry| entry.set.in_flight() > 0);
        let is_idle = idleness.check(channel.picks(), has_calls, Instant::now());
        let was_idle = std::mem::replace(&mut idleness.is_idle, is_idle);
        self.signals.is_idle.store(is_idle, Ordering::Relaxed);
        if is_idle && !was_idle {
            for entry in &mut self.entries {
                entry.set.dismiss_all();
                entry.state = ConnectivityState::Idle;
            }
            let endpoints = self.entries.iter().map(|entry| Arc::clone(&entry.set)).collect();
            let (picker, state) = (Arc::new(NoneReady::waiting()), ConnectivityState::Idle);
            channel.publish(&View { endpoints, picker, state });
        }
        is_idle
    }

    /// Decides, and publishes the decision. Returns when to decide again at the latest.
    fn decide(&mut self, channel: &Views) -> Option<std::time::Instant> {
        let (now, needs) = (Instant::now().into_std(), self.policy.needs());
        let mut errors = Vec::with_capacity(self.entries.len());
        for entry in &mut self.entries {
            let state = entry.set.connectivity();
            let is_lost = entry.state == ConnectivityState::Ready && state != ConnectivityState::Ready;
            let is_failed = state == ConnectivityState::TransientFailure && entry.state != state;
            if is_lost || is_failed {
                // The name may have other endpoints by now.
                self.resolving.request();
            }
            entry.state = state;
            let failed = state == ConnectivityState::TransientFailure;
            errors.push(if failed { entry.set.last_connect_error() } else { None });
        }
        let views: Vec<_> = self
            .entries
            .iter()
            .zip(&errors)
            .map(|(entry, error)| entry.view(error.as_ref(), needs))
            .collect();
        let mut wake_at = None;
        channel.set_hash_header(self.hash_header());
        let view = match &self.error {
            Some(error) if views.is_empty() => View {
                endpoints: Vec::new(),
                picker: Arc::new(NoneReady::because(Arc::clone(error))),
                state: ConnectivityState::TransientFailure,
            },
            None if !self.is_resolved => return None,
            _ => {
                let decision = self.policy.decide(&views, now);
                wake_at = decision.wake_at;
                for &at in &decision.connect {
                    let again_at = self.entries.get_mut(at).and_then(|entry| entry.connect(now));
                    wake_at = [wake_at, again_at].into_iter().flatten().min();
                }
                View {
                    endpoints: self.entries.iter().map(|entry| Arc::clone(&entry.set)).collect(),
                    picker: decision.picker,
                    state: decision.state,
                }
            }
        };
        channel.publish(&view);
        let idle_at = self.idleness.as_ref().map(|idleness| (idleness.since + idleness.timeout).into_std());
        [wake_at, idle_at].into_iter().flatten().min()
    }
}

/// Waits for a reason to decide again. Not a method, so that the policy need not be `Sync`.
async fn next_event(
    signals: &Signals,
    resolver: &dyn Resolver,
    version: u64,
    resolution: &mut Option<ResolutionTask>,
    wake_at: Option<std::time::Instant>,
) -> Event {
    let is_resolving = resolution.is_some();
    let resolved = async {
        match resolution {
            Some(resolution) => resolution.await,
            None => pending().await,
        }
    };
    let wake = async {
        match wake_at {
            Some(at) => sleep_until(Instant::from_std(at)).await,
            None => pending().await,
        }
    };
    tokio::select! {
        biased;
        outcome = resolved => Event::Resolved(outcome),
        () = signals.changed.notified() => Event::EndpointChanged,
        () = resolver.changed(version), if !is_resolving => Event::ResolverChanged,
        () = wake => Event::TimePassed,
    }
}
