//! The streams on which a balanced channel watches an endpoint: its health (gRFC A17) and its load (gRFC A51).

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use thalweg_balance::ConnectivityState;
use thalweg_balance::health::{self, Health};
use thalweg_balance::policy::{LoadReport, Policy, ReportSource};
use thalweg_balance::watching::{Watching, WatchingStep};
use thalweg_http2::FixedFields;
use tokio::time::Instant;

use crate::connection::{Connection, OwnStream};
use crate::grpc::compression::EncodingSet;
use crate::grpc::request;
use crate::lanes::{LaneSet, LastReport};
use crate::request_headers::Origin;
use crate::status::{Code, Status};

/// Services that a channel watches at each endpoint, as its policy and service config ask.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Watched {
    /// The service whose health is watched.
    health: Option<String>,
    reports: Option<ReportSource>,
}

impl Watched {
    pub(super) fn new(policy: &dyn Policy, health_check: Option<&str>) -> Self {
        let health = health_check.filter(|_| policy.checks_health());
        Self { health: health.map(str::to_owned), reports: policy.needs().reports }
    }
}

/// The fields that all requests of a channel share, an owned [`Origin`].
#[derive(Debug)]
pub(super) struct WatchOrigin {
    scheme: String,
    authority: String,
    user_agent: String,
}

/// The streams that a channel opens at each of its endpoints.
#[derive(Debug)]
pub(super) struct WatchConfig {
    watched: Watched,
    health: Option<WatchedMethod>,
    /// Load reports out of band.
    reports: Option<WatchedMethod>,
}

/// A method that is called at each endpoint, with its request.
#[derive(Debug)]
struct WatchedMethod {
    path: &'static str,
    headers: Arc<FixedFields>,
    request: Vec<u8>,
}

impl WatchOrigin {
    pub(super) fn new(origin: Origin<'_>) -> Self {
        let Origin { scheme, authority, user_agent } = origin;
        Self { scheme: scheme.to_owned(), authority: authority.to_owned(), user_agent: user_agent.to_owned() }
    }

    /// Creates the requests of the streams.
    pub(super) fn config(&self, watched: Watched) -> Arc<WatchConfig> {
        let Self { scheme, authority, user_agent } = self;
        let (content_subtype, accepts, timeout) = ("", EncodingSet::IDENTITY, None);
        let method = |path, request| {
            let fields =
                request::Method { scheme, authority, path, content_subtype, user_agent, accepts, timeout };
            WatchedMethod { path, headers: FixedFields::new(fields.fixed_fields()), request }
        };
        let health = watched.health.as_ref().map(|service| method(health::WATCH, Health::request(service)));
        let reports = match watched.reports {
            Some(ReportSource::OutOfBand(interval)) => {
                Some(method(LoadReport::STREAM, LoadReport::request(interval)))
            }
            Some(ReportSource::PerCall) | None => None,
        };
        Arc::new(WatchConfig { watched, health, reports })
    }
}

impl WatchConfig {
    /// Returns whether these are the streams for `watched`.
    pub(super) fn is_for(&self, watched: &Watched) -> bool {
        self.watched == *watched
    }

    /// Returns whether the policy reads load reports.
    pub(super) fn has_reports(&self) -> bool {
        self.watched.reports.is_some()
    }

    /// Returns whether load reports come in trailers.
    pub(super) fn has_reports_of_calls(&self) -> bool {
        self.watched.reports == Some(ReportSource::PerCall)
    }

    /// Returns what is watched at an endpoint, if anything is. `report` stores its load reports. The streams of
    /// `former` that are still asked for stay open: calls would wait until another one reports health.
    pub(super) fn at_endpoint(
        self: &Arc<Self>,
        report: Option<&Arc<LastReport>>,
        former: Option<Box<Watches>>,
    ) -> Option<Box<Watches>> {
        let is_needed = self.health.is_some() || self.has_reports();
        let report = report.filter(|_| self.has_reports()).cloned();
        is_needed.then(|| {
            let mut watches = Watches::new(Arc::clone(self), report);
            if let Some(former) = former {
                watches.take_over(*former);
            }
            Box::new(watches)
        })
    }
}

/// The streams to one endpoint. All are on one of its connections.
#[derive(Debug)]
pub(super) struct Watches {
    config: Arc<WatchConfig>,
    /// The connection with the streams.
    connection: Option<Arc<Connection>>,
    /// Numbers of the connections that were ready at the last look.
    ready: Vec<u64>,
    health: Health,
    health_stream: Watch,
    report_stream: Watch,
    report: Option<Arc<LastReport>>,
    /// Whether it was logged that the server does not know a method.
    is_logged: bool,
}

impl Watches {
    fn new(config: Arc<WatchConfig>, report: Option<Arc<LastReport>>) -> Self {
        Self {
            config,
            connection: None,
            ready: Vec::new(),
            health: Health::Unknown,
            health_stream: Watch::default(),
            report_stream: Watch::default(),
            report,
            is_logged: false,
        }
    }

    fn take_over(&mut self, former: Self) {
        let (watched, before) = (&self.config.watched, &former.config.watched);
        let has_same_reports = watched.reports == before.reports;
        if watched.health == before.health {
            (self.health, self.health_stream) = (former.health, former.health_stream);
        } else {
            self.health_stream.reconnect(former.connection.is_some());
        }
        if has_same_reports {
            self.report_stream = former.report_stream;
        } else {
            self.report_stream.reconnect(former.connection.is_some());
        }
        (self.connection, self.ready) = (former.connection, former.ready);
        self.is_logged = former.is_logged && has_same_reports;
    }

    /// Returns the last load report.
    pub(super) fn report(&self) -> Option<Arc<LoadReport>> {
        self.report.as_ref()?.get()
    }

    /// Returns the state that the policy sees of an endpoint whose connections have this state.
    pub(super) fn state(&self, connected: ConnectivityState) -> ConnectivityState {
        match (&self.config.health, connected) {
            (Some(_), ConnectivityState::Ready) => self.health.state(),
            _ => connected,
        }
    }

    /// Returns why the endpoint is not healthy.
    pub(super) fn error(&self) -> Option<&str> {
        match &self.health {
            Health::Unhealthy(reason) => Some(reason),
            Health::Unknown | Health::Healthy => None,
        }
    }

    /// Moves the streams to a ready connection if theirs accepts no more calls, and opens those that are due. Returns
    /// when the next one is due.
    pub(super) fn update(&mut self, set: &LaneSet) -> Option<std::time::Instant> {
        if self.config.health.is_none() && self.config.reports.is_none() {
            return None;
        }
        self.follow(&set.ready_connections());
        let connection = self.connection.clone()?;
        let config = Arc::clone(&self.config);
        let mut due = [None, None];
        if let Some(method) = &config.health {
            due[0] = self.health_stream.open_if_due(method, &connection);
            if let Some(status) = self.health_stream.failed.take() {
                self.health_ended(set, &status);
                due[0] = self.health_stream.open_if_due(method, &connection);
            }
        }
        if let Some(method) = &config.reports {
            due[1] = self.report_stream.open_if_due(method, &connection);
            if let Some(status) = self.report_stream.failed.take() {
                self.reports_ended(set, &status);
                due[1] = self.report_stream.open_if_due(method, &connection);
            }
        }
        due.into_iter().flatten().min()
    }

    fn follow(&mut self, ready: &[Arc<Connection>]) {
        let current = self.connection.as_ref();
        if current.is_none_or(|current| !ready.iter().any(|ready| Arc::ptr_eq(ready, current))) {
            let was_ready = |connection: &&Arc<Connection>| self.ready.contains(&connection.id);
            let next = ready.iter().find(was_ready).or(ready.first()).cloned();
            // A connection that was ready beside the last one goes to the same server, whose health is known.
            if next.as_ref().is_none_or(|next| !was_ready(&next)) {
                self.health = Health::Unknown;
            }
            self.health_stream.reconnect(next.is_some());
            self.report_stream.reconnect(next.is_some());
            self.connection = next;
        }
        self.ready = ready.iter().map(|connection| connection.id).collect();
    }

    /// Polls the streams. Returns when the endpoint's health has changed, or a stream has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, set: &LaneSet) -> Poll<()> {
        let mut changed = Poll::Pending;
        while let Poll::Ready(event) = self.health_stream.poll(cx) {
            let service = self.config.watched.health.as_deref().unwrap_or_default();
            match event.and_then(|response| Health::of_response(&response, service).map_err(malformed)) {
                Ok(health) => {
                    self.health_stream.watching.on_message();
                    if health != self.health {
                        self.note_health(set, health);
                        changed = Poll::Ready(());
                    }
                }
                Err(status) => {
                    self.health_ended(set, &status);
                    changed = Poll::Ready(());
                }
            }
        }
        while let Poll::Ready(event) = self.report_stream.poll(cx) {
            match event {
                Ok(report) => {
                    self.report_stream.watching.on_message();
                    if let Some(last) = &self.report {
                        last.note(&report);
                    }
                }
                Err(status) => {
                    self.reports_ended(set, &status);
                    changed = Poll::Ready(());
                }
            }
        }
        changed
    }

    fn note_health(&mut self, set: &LaneSet, health: Health) {
        tracing::debug!(channel = %set.target(), peer = self.peer(), ?health, "health changed");
        self.health = health;
    }

    fn health_ended(&mut self, set: &LaneSet, status: &Status) {
        self.health_stream.end(set, status.code());
        let is_connected = self.connection.as_deref().is_some_and(accepts_calls);
        let service = self.config.watched.health.as_deref().unwrap_or_default();
        // The end of a connection says nothing of the server's health.
        let health = if is_connected {
            Health::of_end(status.code(), status.message(), service)
        } else {
            Health::Unknown
        };
        self.log_unimplemented(set, status, "health check");
        self.note_health(set, health);
    }

    fn reports_ended(&mut self, set: &LaneSet, status: &Status) {
        self.report_stream.end(set, status.code());
        self.log_unimplemented(set, status, "load reports");
        let (channel, peer, why) = (set.target(), self.peer(), status.message());
        tracing::debug!(%channel, peer, why, "stream of load reports ended");
    }

    /// Logs once per endpoint that its server does not know a method (gRFCs A17 and A51).
    fn log_unimplemented(&mut self, set: &LaneSet, status: &Status, what: &str) {
        if status.code() == Code::Unimplemented && !std::mem::replace(&mut self.is_logged, true) {
            let (channel, peer, why) = (set.target(), self.peer(), status.message());
            tracing::warn!(%channel, peer, why, "{what} disabled: the server does not implement it");
        }
    }

    fn peer(&self) -> &str {
        self.connection.as_ref().map_or("", |connection| &connection.peer)
    }
}

/// One stream that is opened again when it ends.
#[derive(Debug, Default)]
struct Watch {
    watching: Watching,
    stream: Option<OwnStream>,
    /// Why the last stream could not be opened.
    failed: Option<Status>,
}

impl Watch {
    fn reconnect(&mut self, is_connected: bool) {
        self.stream = None;
        if is_connected {
            self.watching.on_connected();
        } else {
            self.watching.on_disconnected();
        }
    }

    /// Returns when a stream is due, if not now.
    fn open_if_due(
        &mut self,
        method: &WatchedMethod,
        connection: &Arc<Connection>,
    ) -> Option<std::time::Instant> {
        match self.watching.poll(Instant::now().into_std()) {
            WatchingStep::Idle => None,
            WatchingStep::WaitUntil(at) => Some(at),
            WatchingStep::Open => {
                let WatchedMethod { path, headers, request } = method;
                match OwnStream::open(connection, path, headers, request) {
                    Ok(stream) => self.stream = Some(stream),
                    Err(status) => self.failed = Some(status),
                }
                None
            }
        }
    }

    /// Polls for the next message, or the end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Status>> {
        let Some(stream) = &mut self.stream else { return Poll::Pending };
        stream.poll_response(cx).map(|response| {
            response.unwrap_or_else(|| Err(Status::new(Code::Ok, "the server ended the stream")))
        })
    }

    fn end(&mut self, set: &LaneSet, code: Code) {
        self.stream = None;
        self.watching.on_end(code, |failures| set.backoff(failures), Instant::now().into_std());
    }
}

fn malformed(error: thalweg_balance::MalformedMessage) -> Status {
    Status::local(Code::Internal, error.to_string())
}

fn accepts_calls(connection: &Connection) -> bool {
    let state = connection.lock();
    state.ended().is_none() && !state.http2.peer_going_away()
}
