//! The parts of a call that all its attempts share.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use thalweg_balance::policy::RingHash;
use thalweg_core::timeout;
use thalweg_http2::{Block, FieldList, FixedFields, Indexing};
use tokio::time::{Instant, timeout_at};

use crate::call_context::{CallContext, CallProgress, Phase};
use crate::channel::Channel;
use crate::connection::{CallPosition, Connection, Outgoing, SlotKey};
use crate::grpc::request;
use crate::measure::CallMeasure;
use crate::method::Method;
use crate::options::CallOptions;
use crate::request_headers::RawRequestHeaders;
use crate::status::{self, Code, Status};

/// A call that is ready to start.
pub(super) struct Prepared {
    pub(super) fields: RequestFields,
    pub(super) outgoing: Outgoing,
    pub(super) deadline: Option<Instant>,
    /// The deadline may have passed when the call starts.
    has_short_timeout: bool,
    pub(super) measure: CallMeasure,
    /// Reported in the call's errors.
    pub(super) progress: CallProgress,
    /// State of a call that has failed at least once.
    failure: OnceLock<Box<Failure>>,
}

#[derive(Default)]
struct Failure {
    /// Connection of the failed attempt, and its progress there.
    reached: Mutex<Option<Reached>>,
    /// Servers of earlier attempts, and of hedged ones that are under way.
    tried: Mutex<Vec<Arc<str>>>,
}

struct Reached {
    connection: Arc<Connection>,
    position: Option<CallPosition>,
}

/// Request headers: the fields shared by all calls of the method, and the call's own.
pub(super) struct RequestFields {
    fixed: Arc<FixedFields>,
    extra: FieldList,
}

/// Request header with the number of earlier attempts by policy (gRFC A6).
const PREVIOUS_ATTEMPTS: &[u8] = b"grpc-previous-rpc-attempts";

impl RequestFields {
    /// Returns the hash of a header's values, as `ring_hash` uses it (gRFC A76).
    #[cold]
    pub(super) fn hash_of(&self, name: &str) -> Option<u64> {
        let values: Vec<&[u8]> = self
            .extra
            .iter()
            .filter(|field| field.name == name.as_bytes())
            .map(|field| field.value)
            .collect();
        (!values.is_empty()).then(|| RingHash::hash(&values.join(&b","[..])))
    }

    /// Returns the headers for a connection. `adapted` stores those of an endpoint with names of its own.
    #[inline]
    pub(super) fn block<'a>(
        &'a self,
        connection: &Connection,
        adapted: &'a mut Option<Arc<FixedFields>>,
    ) -> Block<'a> {
        let fixed = match connection.origin() {
            None => &self.fixed,
            Some(origin) => adapted.insert(origin.adapt(&self.fixed)),
        };
        Block { fixed: Some(fixed), extra: &self.extra }
    }
}

impl Prepared {
    #[inline]
    pub(super) fn new(
        channel: &Channel,
        method: &Method,
        metadata: &HeaderMap,
        options: &CallOptions,
    ) -> Result<Self, Status> {
        // Converted here, where results are small: the result of this function is a whole call, which should not be
        // copied.
        let refused = |status: Status| refused(status, channel, method);
        let timeout =
            options.timeout_of(timeout::from_metadata(metadata).map_err(|error| refused(error.into()))?);
        let encoding = options.send_compressed.unwrap_or_default();
        let measure = channel.measure_call(method);
        let injected = measure.inject(metadata);
        let metadata = injected.as_deref().unwrap_or(metadata);
        let mut extra = FieldList::new();
        // Round timeouts are part of the shared headers.
        let (shared_timeout, own_timeout) =
            if timeout.is_some_and(timeout::is_round) { (timeout, None) } else { (None, timeout) };
        let emitted =
            request::emit(own_timeout, encoding, metadata, options.max_sent_metadata_size, &mut extra);
        emitted.map_err(|error| refused(error.into())).inspect_err(|status| measure.fail(status))?;
        let fixed = channel.request_headers(method, options.accept_compressed, shared_timeout);
        Ok(Self {
            fields: RequestFields { fixed, extra },
            outgoing: Outgoing::new(
                options.max_encoding_message_size,
                encoding,
                options.compression_threshold,
            ),
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            has_short_timeout: timeout.is_some_and(|timeout| timeout < TIMER_GRANULARITY),
            measure,
            progress: CallProgress::new(),
            failure: OnceLock::new(),
        })
    }

    /// Prepares a call whose request headers come from the caller. The deadline is this side's, after `timeout`.
    pub(super) fn raw(
        channel: &Channel,
        fixed: &RawRequestHeaders,
        headers: &HeaderMap,
        timeout: Option<Duration>,
    ) -> Result<Self, Status> {
        let refused = |status: Status| refused(status, channel, &fixed.method);
        let measure = channel.measure_call(&fixed.method);
        let injected = measure.inject(headers);
        let headers = injected.as_deref().unwrap_or(headers);
        let mut extra = FieldList::new();
        fixed
            .emit(headers, &mut extra)
            .map_err(|error| refused(error.into()))
            .inspect_err(|status| measure.fail(status))?;
        Ok(Self {
            fields: RequestFields { fixed: Arc::clone(&fixed.fields), extra },
            outgoing: Outgoing::default(),
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            has_short_timeout: timeout.is_some_and(|timeout| timeout < TIMER_GRANULARITY),
            measure,
            progress: CallProgress::new(),
            failure: OnceLock::new(),
        })
    }

    /// Returns the headers of a retry, if they differ from those of the first attempt: tracing may change them, and
    /// retries by policy are counted in a header. `previous` is their number.
    #[cold]
    pub(super) fn fields_of_retry(&self, previous: u32) -> Option<RequestFields> {
        self.fields_of_attempt(previous, &self.measure)
    }

    /// Returns the headers of a hedged attempt that starts again, if tracing changes them. They already have the number
    /// of earlier attempts.
    pub(super) fn fields_of_restart(&self, previous: u32) -> Option<RequestFields> {
        self.measure.is_traced().then(|| self.fields_of_retry(previous)).flatten()
    }

    fn fields_of_attempt(&self, previous: u32, measure: &CallMeasure) -> Option<RequestFields> {
        let injected = self.injected_fields(measure);
        if injected.is_none() && previous == 0 {
            return None;
        }
        let mut extra = injected.unwrap_or_else(|| self.fields.extra.clone());
        if previous > 0 {
            extra.push(PREVIOUS_ATTEMPTS, previous.to_string().as_bytes(), Indexing::Literal);
        }
        Some(RequestFields { fixed: Arc::clone(&self.fields.fixed), extra })
    }

    /// Returns the call's own headers with the trace context of a retry.
    fn injected_fields(&self, measure: &CallMeasure) -> Option<FieldList> {
        let injected = measure.inject_again()?;
        let is_shared =
            self.fields.fixed.fields().iter().any(|field| field.name == timeout::NAME.as_str().as_bytes());
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        let timeout = self.deadline.map(left).filter(|_| !is_shared);
        let mut extra = FieldList::new();
        let encoding = self.outgoing.encoding;
        // It fits like the first one, because the injected fields have the same length.
        let emitted = request::emit(timeout, encoding, &injected, usize::MAX, &mut extra);
        emitted.is_ok().then_some(extra)
    }

    /// Returns whether the deadline has passed already. Such a call is not even started: timers are coarse, and a
    /// response may be faster.
    #[inline]
    pub(super) fn has_expired(&self) -> bool {
        self.has_short_timeout && self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Returns the status of a call that [has expired](Self::has_expired).
    #[cold]
    pub(super) fn expired(&self) -> Status {
        self.progress.note(Phase::Unsent);
        status::deadline_exceeded()
    }

    /// Prepares another attempt that is measured for itself while others are under way. `previous` is the number of
    /// earlier ones, at least 1.
    pub(super) fn hedge(&self, previous: u32) -> Self {
        let measure = self.measure.start_hedge(previous);
        let fields = self.fields_of_attempt(previous, &measure);
        let fields = fields.unwrap_or_else(|| RequestFields {
            fixed: Arc::clone(&self.fields.fixed),
            extra: self.fields.extra.clone(),
        });
        let (progress, failure) = (CallProgress::new(), OnceLock::new());
        let (outgoing, deadline, has_short_timeout) = (self.outgoing, self.deadline, self.has_short_timeout);
        Self { fields, outgoing, deadline, has_short_timeout, measure, progress, failure }
    }

    /// Notes how far a hedged attempt got, for the call's error.
    pub(super) fn note_hedge(&self, hedge: &Self) {
        self.progress.note(hedge.progress.phase());
        if let Some(reached) = hedge.take_reached() {
            *self.failure().reached.lock().unwrap_or_else(PoisonError::into_inner) = Some(reached);
        }
    }

    fn take_reached(&self) -> Option<Reached> {
        self.failure.get()?.reached.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records the server of an attempt: further ones prefer others.
    #[cold]
    pub(super) fn note_tried(&self, connection: &Connection) {
        let peer = Arc::clone(&connection.peer);
        self.failure().tried.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
    }

    /// Returns whether an attempt was sent to the server of this connection.
    pub(super) fn has_tried(&self, connection: &Connection) -> bool {
        self.failure.get().is_some_and(|failure| {
            failure.tried.lock().unwrap_or_else(PoisonError::into_inner).contains(&connection.peer)
        })
    }

    fn failure(&self) -> &Failure {
        self.failure.get_or_init(Box::default)
    }

    /// Records that the call failed, or was given up, on this connection.
    #[cold]
    pub(super) fn note_reached(&self, connection: &Arc<Connection>, key: Option<SlotKey>) {
        let position = key.and_then(|key| connection.position(key));
        let reached = Reached { connection: Arc::clone(connection), position };
        *self.failure().reached.lock().unwrap_or_else(PoisonError::into_inner) = Some(reached);
    }

    /// Returns the call's failure. If it arose on this side, the context of the call is added.
    #[cold]
    pub(super) fn failed(&self, status: Status, channel: &Channel, method: &Method) -> Status {
        let reached = self.take_reached();
        let mut phase = Some(self.progress.phase());
        let status = if status.is_local() && status.code() == Code::DeadlineExceeded {
            phase = None;
            let position = reached.as_ref().and_then(|reached| reached.position);
            status::deadline_exceeded_at(self.incomplete_step(position, channel))
        } else {
            status
        };
        status.with_call_context(CallContext {
            path: method.path(),
            target: &channel.target(),
            peer: reached.as_ref().map(|reached| &*reached.connection.peer),
            attempt: self.progress.attempt(),
            phase,
        })
    }

    /// Describes the step that was incomplete when the deadline passed.
    fn incomplete_step(&self, position: Option<CallPosition>, channel: &Channel) -> String {
        match (self.progress.phase(), position) {
            (Phase::Unsent, _) => "the request was not sent yet".to_owned(),
            (Phase::Connection, _) => match channel.endpoints().last_connect_error() {
                Some(why) => format!("no connection was ready: {why}"),
                None => "no connection was ready (check that the server is running)".to_owned(),
            },
            (Phase::FreeStream, _) => {
                "no stream was free: other calls use all streams that the server allows".to_owned()
            }
            (Phase::Requests, _) => "the requests were not all sent, and no response arrived".to_owned(),
            (_, Some(CallPosition { unsent, .. })) if unsent > 0 => {
                format!(
                    "{unsent} bytes of the request message were not sent: blocked by the server's flow control"
                )
            }
            (_, Some(CallPosition { has_headers: true, received, .. })) => {
                format!("the response was incomplete, with {received} bytes of its message")
            }
            (Phase::MessageResponse | Phase::Response, _) => "no response arrived in time".to_owned(),
        }
    }
}

/// Adds the context to the error of a call that could not be prepared.
#[cold]
fn refused(status: Status, channel: &Channel, method: &Method) -> Status {
    let (path, target) = (method.path(), &channel.target());
    status.with_call_context(CallContext { path, target, peer: None, attempt: 1, phase: Some(Phase::Unsent) })
}

/// Timeouts below this may pass without a timer's notice: Tokio's timers have a granularity of 1 ms.
const TIMER_GRANULARITY: Duration = Duration::from_millis(2);

/// Runs `step` until the deadline.
pub(super) async fn within<T>(
    deadline: Option<Instant>,
    step: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    match deadline {
        None => step.await,
        Some(deadline) => match timeout_at(deadline, step).await {
            Ok(outcome) => outcome.map_err(|status| status::cancelled_by_deadline(status, deadline)),
            Err(_) => Err(status::deadline_exceeded()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the error of `within` for a step that takes `takes` and fails with `code`.
    async fn check(deadline: Duration, takes: Duration, code: Code, expected: Code) {
        let step = async {
            // Blocks the timer, so the step ends first.
            std::thread::sleep(takes);
            Err::<(), _>(Status::new(code, "reset"))
        };
        let outcome = within(Some(Instant::now() + deadline), step).await;
        assert_eq!(outcome.map_err(|status| status.code()), Err(expected));
    }

    #[tokio::test]
    async fn reset_after_deadline_is_deadline_exceeded() {
        let (short, long) = (Duration::from_millis(1), Duration::from_secs(60));
        check(short, 5 * short, Code::Cancelled, Code::DeadlineExceeded).await;
        check(short, 5 * short, Code::Unavailable, Code::Unavailable).await;
        check(long, short, Code::Cancelled, Code::Cancelled).await;
    }
}
