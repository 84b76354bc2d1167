//! The control of a balanced channel: a task that resolves names, and decides by the channel's policy.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use thalweg_balance::policy::{Decision, EndpointWeight, GracefulSwitch, NoneReady, Policy, PolicyConfig};
use thalweg_balance::resolving::{Resolving, ResolvingStep};
use thalweg_balance::service_config::ServiceConfigError;
use thalweg_balance::{ConnectivityState, Endpoint};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::configuration::{Configuration, Configured};
use super::entry::{Entry, Observed};
use super::views::{View, Views};
use super::watches::{WatchConfig, WatchOrigin, Watched};
use crate::event_log::EventLog;
use crate::lanes::{ChannelParts, Connector, LaneSet, LaneSetObserver, Lanes, LastReport};
use crate::random::{random_seed, random_unit};
use crate::request_headers::Origin;
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
    /// Service whose health is checked at each endpoint (gRFC A17).
    pub(crate) health_check: Option<String>,
}

/// State of a balanced channel's control, between and during its decisions.
#[derive(Debug)]
pub(super) struct Control {
    policy: GracefulSwitch,
    configuration: Option<Configuration>,
    resolver: Arc<dyn Resolver>,
    factory: EndpointFactory,
    watch_origin: WatchOrigin,
    /// Service whose health is checked at each endpoint (gRFC A17).
    health_check: Option<String>,
    watches: Arc<WatchConfig>,
    signals: Arc<Signals>,
    events: Arc<EventLog>,
    /// Ids of the endpoints that outlier detection has ejected.
    ejected: Vec<u64>,
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
    fn create(
        &self,
        endpoint: &Endpoint,
        endpoints: usize,
        observer: &Arc<Signals>,
        reports: Option<Arc<LastReport>>,
    ) -> Arc<LaneSet> {
        let (lanes, mut connector) = match endpoint.get::<OwnSettings>() {
            Some(OwnSettings(own)) => (own.lanes(), own.connector(self.connector.channel_parts())),
            None => (&self.lanes, self.connector.to(AddressSource::Endpoint(endpoint.clone()))),
        };
        connector.measure = connector.measure.channel().endpoint(&endpoint.locality);
        // The control closes the connections of an idle channel: a policy would connect them again.
        let maintenance = connector.connection.maintenance.without_idle_timeout();
        connector.connection.maintenance = Arc::new(maintenance);
        connector.connection.reports = reports;
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
    pub(super) fn new(
        config: BalancedConfig,
        factory: EndpointFactory,
        signals: Arc<Signals>,
        events: Arc<EventLog>,
        origin: Origin<'_>,
    ) -> Self {
        let BalancedConfig { policy, configuration, resolver, refresh, .. } = config;
        let BalancedConfig { interval_min, idle_timeout, health_check, .. } = config;
        let policy = GracefulSwitch::new(policy, random_seed());
        let watch_origin = WatchOrigin::new(origin);
        let watches = watch_origin.config(Watched::new(&policy, health_check.as_deref()));
        let refresh = refresh.filter(|_| resolver.looks_up());
        let resolving = Resolving::new().min_interval(interval_min).refresh_period(refresh);
        Self {
            policy,
            configuration,
            resolver,
            factory,
            watch_origin,
            health_check,
            watches,
            signals,
            events,
            ejected: Vec::new(),
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
                let watch_at = self.update_watches();
                let decide_at = if self.check_idleness(&channel) { None } else { self.decide(&channel) };
                // A policy that was replaced may have read other streams.
                let watch_at = if self.configure_watches() { self.update_watches() } else { watch_at };
                [watch_at, decide_at].into_iter().flatten().min()
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
            let entries = &mut self.entries;
            match next_event(&signals, &*resolver, self.version, &mut resolution, entries, wake_at).await {
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
            let error = format!("failed to resolve {target}: {error}");
            control.events.note_failure(&error);
            control.error = Some(error.into());
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
        let target = &self.factory.connector.addresses.target;
        let why_empty = resolution.why_empty();
        self.error = why_empty.map(|note| format!("{target} has no servers: {note}").into());
        self.is_resolved = true;
        let is_ok = !resolution.endpoints.is_empty() && !is_rejected;
        let selected = self.policy.select(resolution.endpoints);
        let mut former = std::mem::take(&mut self.entries);
        // Endpoints of a policy that is being replaced leave soon, and need no share of the lanes.
        let lasting = self.policy.selected_len();
        for endpoint in &selected {
            let kept = former.iter().position(|entry| entry.endpoint.is_same(endpoint));
            let entry = match kept {
                Some(at) => Entry { endpoint: endpoint.clone(), ..former.swap_remove(at) },
                None => self.create_entry(endpoint, lasting),
            };
            self.entries.push(entry);
        }
        self.share_lanes(selected.len());
        for entry in &former {
            self.events.note_endpoint("endpoint removed:", entry.set.id, entry.set.name());
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
        let Configured { policy, connections_max, health_check, rejected } = configuration.resolved(found)?;
        let target = &self.factory.connector.addresses.target;
        if let Some(error) = &rejected {
            tracing::warn!(channel = %target, why = %error, "rejected a service config; the last one stays");
        }
        if policy != *self.policy.config() {
            tracing::debug!(channel = %target, ?policy, "changes the balancing policy");
            self.policy.update(&policy);
        }
        self.health_check = health_check;
        self.configure_watches();
        self.factory.lanes.limit(connections_max);
        Ok(rejected.is_some())
    }

    /// Divides the cap of adaptive lanes among the endpoints, whose number may have changed.
    fn share_lanes(&self, endpoints: usize) {
        let shared = self.factory.lanes.cap_for_endpoint(endpoints);
        for Entry { endpoint, set, .. } in &self.entries {
            let own =
                endpoint.get::<OwnSettings>().map(|OwnSettings(own)| own.lanes().cap_for_endpoint(endpoints));
            if let Some(cap) = own.unwrap_or(shared) {
                set.set_cap(cap);
            }
        }
    }

    /// Watches at endpoints what the policy and the service config ask for. Returns whether that has changed.
    fn configure_watches(&mut self) -> bool {
        let watched = Watched::new(&self.policy, self.health_check.as_deref());
        if self.watches.is_for(&watched) {
            return false;
        }
        self.watches = self.watch_origin.config(watched);
        for entry in &mut self.entries {
            let former = entry.watches.take();
            entry.watches = self.watches.at_endpoint(entry.report.as_ref(), former);
        }
        true
    }

    fn create_entry(&self, endpoint: &Endpoint, endpoints: usize) -> Entry {
        // A later service config may choose a policy that reads reports.
        let may_change = self.configuration.is_some();
        let report = (may_change || self.watches.has_reports()).then(Arc::default);
        let reports_of_calls = may_change || self.watches.has_reports_of_calls();
        let reports = report.clone().filter(|_| reports_of_calls);
        let set = self.factory.create(endpoint, endpoints, &self.signals, reports);
        let watches = self.watches.at_endpoint(report.as_ref(), None);
        self.events.note_endpoint("endpoint added:", set.id, set.name());
        let state = ConnectivityState::Idle;
        Entry { endpoint: endpoint.clone(), set, state, watches, report, connected_at: None }
    }

    /// Moves and opens the streams to endpoints. Returns when the next one is due.
    fn update_watches(&mut self) -> Option<std::time::Instant> {
        let update = |entry: &mut Entry| entry.watches.as_mut()?.update(&entry.set);
        self.entries.iter_mut().filter_map(update).min()
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
            self.publish(channel, &View { endpoints, withheld: Vec::new(), picker, policy: None, state });
        }
        is_idle
    }

    fn publish(&self, channel: &Views, view: &View) {
        channel.publish(view);
        if let Some(former) = self.events.note_state(view.state) {
            let target = &self.factory.connector.addresses.target;
            tracing::debug!(channel = %target, %former, state = %view.state, "channel changed state");
        }
    }

    /// Notes which endpoints outlier detection has ejected, and which it has returned to service.
    fn note_ejected(&mut self, positions: &[usize]) {
        if positions.is_empty() && self.ejected.is_empty() {
            return;
        }
        let target = &self.factory.connector.addresses.target;
        let is_ejected = |at: usize| positions.contains(&at);
        for (at, Entry { set, .. }) in self.entries.iter().enumerate() {
            let change = match (self.ejected.contains(&set.id), is_ejected(at)) {
                (false, true) => "outlier detection ejected",
                (true, false) => "outlier detection returned to service",
                _ => continue,
            };
            tracing::debug!(channel = %target, endpoint = set.name(), "{change}");
            self.events.note_endpoint(change, set.id, set.name());
        }
        // A policy of the application may name any position.
        self.ejected = positions.iter().filter_map(|&at| Some(self.entries.get(at)?.set.id)).collect();
    }

    /// Records weights that the policy has calculated (gRFC A78).
    fn record_weights(&self, weights: &[(usize, EndpointWeight)]) {
        if weights.is_empty() {
            return;
        }
        if weights.iter().filter_map(|(_, weight)| weight.usable()).count() < 2 {
            self.factory.connector.measure.channel().fell_back_to_round_robin();
        }
        for &(at, weight) in weights {
            // A policy of the application may name any position.
            if let Some(entry) = self.entries.get(at) {
                entry.set.measure().weight(weight);
            }
        }
    }

    /// Decides, and publishes the decision. Returns when to decide again at the latest.
    fn decide(&mut self, channel: &Views) -> Option<std::time::Instant> {
        let now = Instant::now().into_std();
        let mut observed = self.observe();
        let (mut wake_at, mut ejected, mut weights) = (None, Vec::new(), Vec::new());
        let view = match &self.error {
            Some(error) if self.entries.is_empty() => View {
                endpoints: Vec::new(),
                withheld: Vec::new(),
                picker: Arc::new(NoneReady::because(Arc::clone(error))),
                policy: None,
                state: ConnectivityState::TransientFailure,
            },
            None if !self.is_resolved => return None,
            _ => {
                let decision = self.decide_by_policy(&mut observed, now);
                wake_at = decision.wake_at;
                (ejected, weights) = (decision.ejected, decision.weights);
                for &at in &decision.connect {
                    let again_at = self.entries.get_mut(at).and_then(|entry| entry.connect(now));
                    wake_at = [wake_at, again_at].into_iter().flatten().min();
                }
                let is_withheld = |(entry, observed): (&Entry, &Observed)| entry.state != observed.state;
                let mut withheld: Vec<bool> = self.entries.iter().zip(&observed).map(is_withheld).collect();
                for &at in &ejected {
                    if let Some(is_withheld) = withheld.get_mut(at) {
                        *is_withheld = true;
                    }
                }
                View {
                    endpoints: self.entries.iter().map(|entry| Arc::clone(&entry.set)).collect(),
                    withheld,
                    picker: decision.picker,
                    policy: Some(self.policy.name()),
                    state: decision.state,
                }
            }
        };
        channel.set_hash_header(self.hash_header());
        self.publish(channel, &view);
        self.note_ejected(&ejected);
        self.record_weights(&weights);
        let idle_at = self.idleness.as_ref().map(|idleness| (idleness.since + idleness.timeout).into_std());
        [wake_at, idle_at].into_iter().flatten().min()
    }

    /// Notes the states of all endpoints, and asks for a resolution if one has failed.
    fn observe(&mut self) -> Vec<Observed> {
        let mut observed = Vec::with_capacity(self.entries.len());
        for entry in &mut self.entries {
            let state = entry.set.connectivity();
            let is_lost = entry.state == ConnectivityState::Ready && state != ConnectivityState::Ready;
            let is_failed = state == ConnectivityState::TransientFailure && entry.state != state;
            if is_lost || is_failed {
                // The name may have other endpoints by now.
                self.resolving.request();
            }
            observed.push(entry.observe(state));
        }
        observed
    }

    /// Decides, and drops the endpoints that the policy releases, with those in `observed`.
    fn decide_by_policy(&mut self, observed: &mut Vec<Observed>, now: std::time::Instant) -> Decision {
        let is_switching = self.policy.is_switching();
        let decision = loop {
            let has_outcomes = self.policy.needs().outcomes;
            let seen = self.entries.iter().zip(&*observed);
            let views: Vec<_> = seen.map(|(entry, observed)| entry.view(observed, has_outcomes)).collect();
            let decision = self.policy.decide(&views, now);
            // A policy of the application may name any position.
            let released: Vec<usize> =
                (0..self.entries.len()).filter(|at| decision.released.contains(at)).collect();
            if released.is_empty() {
                break decision;
            }
            for &at in released.iter().rev() {
                observed.remove(at);
                let Entry { set, .. } = self.entries.remove(at);
                self.events.note_endpoint("endpoint removed:", set.id, set.name());
            }
        };
        if is_switching && !self.policy.is_switching() {
            let target = &self.factory.connector.addresses.target;
            tracing::debug!(channel = %target, policy = self.policy.name(), "changed the balancing policy");
        }
        decision
    }
}

/// Waits for a reason to decide again. Not a method, so that the policy need not be `Sync`.
async fn next_event(
    signals: &Signals,
    resolver: &dyn Resolver,
    version: u64,
    resolution: &mut Option<ResolutionTask>,
    entries: &mut [Entry],
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
    let watched = poll_fn(|cx| {
        let polled = entries.iter_mut().map(|entry| entry.poll_watches(cx));
        polled.fold(Poll::Pending, |all, one| if one.is_ready() { one } else { all })
    });
    tokio::select! {
        biased;
        outcome = resolved => Event::Resolved(outcome),
        () = signals.changed.notified() => Event::EndpointChanged,
        () = watched => Event::EndpointChanged,
        () = resolver.changed(version), if !is_resolving => Event::ResolverChanged,
        () = wake => Event::TimePassed,
    }
}
