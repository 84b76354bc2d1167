//! Client side of a connection: parses responses and passes them to their calls.

use std::sync::{Arc, Weak};

use http::HeaderMap;
use thalweg_http2::{ErrorCode, Event, ResetCause, ResetReason, StreamId};
use tokio::time::Instant;

use super::last_report::LastReport;
use super::maintenance::{self, Maintenance};
use super::observers::ConnectionObserver;
use crate::connection::{Connection, End, Endpoint, SlotKey, State, WakesOn};
use crate::grpc::code;
use crate::grpc::compression::EncodingSet;
use crate::grpc::header_cache::HeaderCache;
use crate::grpc::response::{self, ResponseHeaders};
use crate::per_thread::thread_number;
use crate::raw::Trailers;
use crate::status::{Code, Status};

pub(crate) struct ClientEndpoint {
    accepts: EncodingSet,
    headers: HeaderCache<Arc<ResponseHeaders>, HEADERS_CACHED_MAX>,
    /// Headers of raw calls.
    raw_headers: HeaderCache<Arc<ResponseHeaders>, HEADERS_CACHED_MAX>,
    /// Trailers that consist of `grpc-status: 0`.
    ok_trailers: HeaderCache<(), HEADERS_CACHED_MAX>,
    observer: Weak<dyn ConnectionObserver>,
    maintenance: Arc<Maintenance>,
    /// Where load reports in trailers are stored.
    reports: Option<Arc<LastReport>>,
    /// The server's GOAWAY, until the observer is notified.
    going_away: Option<GoingAway>,
    /// Number of the thread on which responses last arrived.
    thread: u32,
}

/// A server's responses have one or two header blocks per method.
const HEADERS_CACHED_MAX: usize = 4;

/// Contents of a server's GOAWAY.
struct GoingAway {
    code: ErrorCode,
    permits_fewer_pings: bool,
}

impl ClientEndpoint {
    pub(crate) fn new(
        accepts: EncodingSet,
        observer: Weak<dyn ConnectionObserver>,
        maintenance: Arc<Maintenance>,
        reports: Option<Arc<LastReport>>,
    ) -> Self {
        Self {
            accepts,
            headers: HeaderCache::default(),
            raw_headers: HeaderCache::default(),
            ok_trailers: HeaderCache::default(),
            observer,
            maintenance,
            reports,
            going_away: None,
            thread: 0,
        }
    }

    fn parse_headers(&mut self, state: &State) -> Result<Arc<ResponseHeaders>, Status> {
        let headers = state.http2.fields();
        if let Some(parsed) = self.headers.get(headers.id()) {
            return Ok(Arc::clone(parsed));
        }
        let parsed = Arc::new(response::receive_headers(headers.status(), self.accepts, headers.iter())?);
        self.headers.insert(headers.id(), Arc::clone(&parsed));
        Ok(parsed)
    }

    /// Handles the response headers of a raw call.
    fn take_raw_headers(&mut self, state: &mut State, key: SlotKey, end_stream: bool) {
        let headers = state.http2.fields();
        let received = match self.raw_headers.get(headers.id()) {
            Some(received) => Arc::clone(received),
            None => match response::receive_raw_headers(headers.status(), headers.iter()) {
                Ok(received) => Arc::new(received),
                Err(status) => return fail(state, key, status),
            },
        };
        self.raw_headers.insert(headers.id(), Arc::clone(&received));
        if end_stream && let Some(reports) = &self.reports {
            reports.note_trailers(headers.iter());
        }
        let ends_well =
            !end_stream || Trailers::None.code(received.http_status, &received.metadata) == Code::Ok;
        let Some((slot, _, deferred)) = state.parts(key) else { return };
        let Some(call) = slot.client() else { return };
        call.headers = Some(received);
        deferred.wake(slot.receiver.take());
        if end_stream {
            if !ends_well {
                state.note_failed(key);
            }
            complete(state, key, Ok(no_trailers()));
        }
    }

    fn take_raw_trailers(&mut self, state: &mut State, key: SlotKey) {
        let trailers = state.http2.trailers();
        if self.ok_trailers.get(trailers.id()).is_some() {
            return complete(state, key, Ok(None));
        }
        if let Some(reports) = &self.reports {
            reports.note_trailers(trailers.iter());
        }
        let id = trailers.id();
        let outcome = response::receive_raw_headers(None, trailers.iter()).map(|received| received.metadata);
        match outcome.map(Trailers::of) {
            Err(status) => fail(state, key, status),
            Ok(Trailers::GrpcOk) => {
                self.ok_trailers.insert(id, ());
                complete(state, key, Ok(None));
            }
            Ok(trailers) => {
                if trailers.code(200, &HeaderMap::new()) != Code::Ok {
                    state.note_failed(key);
                }
                complete(
                    state,
                    key,
                    Ok(trailers.into_fields().map_or_else(no_trailers, |it| Some(Box::new(it)))),
                );
            }
        }
    }

    fn parse_trailers(&mut self, state: &mut State, key: SlotKey) -> Result<Option<Box<HeaderMap>>, Status> {
        let trailers = state.http2.trailers();
        if self.ok_trailers.get(trailers.id()).is_some() {
            return Ok(None);
        }
        if let Some(reports) = &self.reports {
            reports.note_trailers(trailers.iter());
        }
        let id = trailers.id();
        let received = response::receive_trailers(trailers.iter());
        if received.is_err() {
            state.note_failed(key);
        }
        let trailers = boxed(received?);
        if trailers.is_none() {
            self.ok_trailers.insert(id, ());
        }
        Ok(trailers)
    }

    fn on_headers(&mut self, state: &mut State, key: SlotKey, end_stream: bool) {
        if is_raw(state, key) {
            return self.take_raw_headers(state, key, end_stream);
        }
        if end_stream {
            let headers = state.http2.fields();
            if let Some(reports) = &self.reports {
                reports.note_trailers(headers.iter());
            }
            let outcome = response::receive_trailers_only(headers.status(), headers.iter());
            if outcome.is_err() {
                state.note_failed(key);
            }
            return complete(state, key, outcome.map(boxed));
        }
        match self.parse_headers(state) {
            Err(status) => fail(state, key, status),
            Ok(headers) => {
                let Some((slot, _, deferred)) = state.parts(key) else { return };
                let Some(call) = slot.client() else { return };
                call.headers = Some(headers);
                if call.wakes_on == WakesOn::Headers {
                    deferred.wake(slot.receiver.take());
                }
            }
        }
    }

    /// Handles a response that arrived in one piece. For a unary call with cached headers and trailers, it only
    /// updates the slot.
    #[inline]
    fn on_complete_response(&mut self, state: &mut State, key: SlotKey, stream: StreamId, bytes: &[u8]) {
        let Some(headers) = self.headers.get(state.http2.fields().id()) else {
            return self.on_parts(state, key, stream, bytes);
        };
        let is_plain = self.ok_trailers.get(state.http2.trailers().id()).is_some();
        let Some((slot, http2, deferred)) = state.parts(key) else { return };
        match slot.client() {
            Some(call) if is_plain && call.wakes_on == WakesOn::End => {
                call.headers = Some(Arc::clone(headers));
            }
            _ => return self.on_parts(state, key, stream, bytes),
        }
        if let Err(error) = slot.inbox.receive_last(bytes, stream, http2) {
            return fail(state, key, error.into());
        }
        slot.end(End::Complete(Ok(None)));
        slot.wake_all(deferred);
        state.load.completed += 1;
    }

    /// Handles headers, data and trailers one by one.
    #[cold]
    fn on_parts(&mut self, state: &mut State, key: SlotKey, stream: StreamId, bytes: &[u8]) {
        self.on_headers(state, key, false);
        on_data(state, key, stream, bytes, false);
        // The call may have failed.
        if state.slot(key).is_some_and(|slot| slot.end.is_none()) {
            self.on_trailers(state, key);
        }
    }

    fn on_trailers(&mut self, state: &mut State, key: SlotKey) {
        if is_raw(state, key) {
            return self.take_raw_trailers(state, key);
        }
        let outcome = self.parse_trailers(state, key);
        complete(state, key, outcome);
    }
}

impl Endpoint for ClientEndpoint {
    const IS_SAMPLED: bool = true;
    const IS_CLIENT: bool = true;

    fn on_event(&mut self, state: &mut State, event: &Event<'_>, _input_start: usize) {
        match *event {
            Event::Headers { tag, end_stream, .. } => self.on_headers(state, tag.into(), end_stream),
            Event::CompleteMessage { stream, tag, bytes, .. } => {
                self.on_complete_response(state, tag.into(), stream, bytes);
            }
            Event::Data { stream, tag, bytes, end_stream, .. } => {
                on_data(state, tag.into(), stream, bytes, end_stream);
            }
            Event::Trailers { tag, .. } => self.on_trailers(state, tag.into()),
            Event::Reset { tag, cause, .. } => {
                let status = status_of_reset(&cause);
                state.note_cut_off(tag.into());
                end(state, tag.into(), End::Lost { status, unprocessed: cause.unprocessed });
                // A stream is free again: a call may be waiting for it.
                state.admit();
            }
            Event::Writable { tag, .. } => {
                if let Some((slot, _, deferred)) = state.parts(tag.into()) {
                    deferred.wake(slot.sender.take());
                }
            }
            Event::StreamsFree => {
                state.admit();
                let opener = state.opener.take();
                state.deferred().wake(opener);
            }
            Event::GoAway { code, debug, .. } => {
                let permits_fewer_pings = maintenance::permits_fewer_pings(code, debug);
                state.goaway_debug = goaway_debug(code, debug);
                self.going_away = Some(GoingAway { code, permits_fewer_pings });
            }
            _ => {}
        }
    }

    fn run_ready(&mut self, connection: &Arc<Connection>, _: &[u8], _: bool, _: Instant) {
        let thread = thread_number();
        if thread != self.thread {
            self.thread = thread;
            if let Some(observer) = self.observer.upgrade() {
                observer.responses_moved_to(thread);
            }
        }
        let Some(GoingAway { code, permits_fewer_pings }) = self.going_away.take() else { return };
        if permits_fewer_pings {
            self.maintenance.ping_less();
        }
        connection.measure.note_going_away(code);
        connection.measure.disconnected();
        if let Some(observer) = self.observer.upgrade() {
            observer.lost(connection);
        }
    }
}

fn on_data(state: &mut State, key: SlotKey, stream: StreamId, bytes: &[u8], end_stream: bool) {
    let Some((slot, http2, deferred)) = state.parts(key) else {
        state.http2.release(stream, bytes.len());
        return;
    };
    match slot.inbox.receive(bytes, slot.stream, http2) {
        Ok(is_complete) if slot.is_streaming_call() => {
            if is_complete {
                deferred.wake(slot.receiver.take());
            }
            state.load.completed += 1;
        }
        Ok(_) => {}
        Err(error) => return fail(state, key, error.into()),
    }
    if end_stream && is_raw(state, key) {
        complete(state, key, Ok(no_trailers()));
    } else if end_stream {
        // A gRPC response ends with trailers (PROTOCOL-HTTP2).
        state.note_failed(key);
        let missing = "the server ended the response without trailers (a proxy may have dropped them)";
        complete(state, key, Err(Status::local(Code::Internal, missing)));
    }
}

#[inline]
fn is_raw(state: &mut State, key: SlotKey) -> bool {
    state.slot(key).is_some_and(|slot| slot.is_raw())
}

/// Returns the end of a raw response without trailers. `None` would mean OK.
#[expect(clippy::unnecessary_wraps, reason = "the parts of an outcome")]
fn no_trailers() -> Option<Box<HeaderMap>> {
    Some(Box::default())
}

fn boxed(metadata: HeaderMap) -> Option<Box<HeaderMap>> {
    if metadata.is_empty() { None } else { Some(Box::new(metadata)) }
}

fn complete(state: &mut State, key: SlotKey, outcome: Result<Option<Box<HeaderMap>>, Status>) {
    end(state, key, End::Complete(outcome));
}

#[inline]
fn end(state: &mut State, key: SlotKey, how: End) {
    let Some((slot, _, deferred)) = state.parts(key) else { return };
    slot.end(how);
    slot.wake_all(deferred);
    state.load.completed += 1;
}

/// Fails the call and resets the stream: the response is invalid.
fn fail(state: &mut State, key: SlotKey, status: Status) {
    state.note_cut_off(key);
    let Some((slot, http2, _)) = state.parts(key) else { return };
    http2.reset(slot.stream, ErrorCode::Cancel);
    end(state, key, End::Lost { status, unprocessed: false });
}

/// Maximum bytes of GOAWAY debug data that are kept.
const GOAWAY_DEBUG_LEN_MAX: usize = 200;

/// Returns code and debug data of a GOAWAY, if it has a reason. Control characters are escaped.
#[cold]
fn goaway_debug(code: ErrorCode, debug: &[u8]) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(&debug[..debug.len().min(GOAWAY_DEBUG_LEN_MAX)]);
    let escaped = text.chars().fold(String::new(), |mut escaped, c| {
        if c.is_control() {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
        escaped
    });
    match (code, &*escaped) {
        (ErrorCode::NoError, "") => None,
        (_, "") => Some(code.to_string().into()),
        (_, text) => Some(format!("{code}: {text}").into()),
    }
}

fn status_of_reset(cause: &ResetCause) -> Status {
    let message = format!("the stream was reset with {}: {}{}", cause.code, cause.reason, hint(cause));
    // A server that shuts down gracefully sends NO_ERROR. For unprocessed calls it was unavailable.
    let code = if cause.unprocessed { Code::Unavailable } else { code::from_error_code(cause.code) };
    Status::local(code, message)
}

/// Returns a hint at the cause of a server's reset.
fn hint(cause: &ResetCause) -> &'static str {
    match cause.code {
        _ if cause.reason != ResetReason::PeerReset => "",
        ErrorCode::Cancel => " (it cancelled the call)",
        ErrorCode::RefusedStream => " (it accepts no more concurrent calls)",
        ErrorCode::EnhanceYourCalm => " (it limits the rate of calls)",
        ErrorCode::InadequateSecurity => " (it requires stronger TLS)",
        ErrorCode::Http11Required => " (it requires HTTP/1.1, which gRPC cannot use)",
        ErrorCode::NoError => " (it did not finish the response)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use thalweg_http2::Initiator;

    use super::*;

    #[test]
    fn resets_become_statuses() {
        let check = |code, unprocessed, expected| {
            let cause =
                ResetCause { initiator: Initiator::Peer, code, unprocessed, reason: ResetReason::PeerReset };
            assert_eq!(status_of_reset(&cause).code(), expected, "{cause:?}");
        };
        check(ErrorCode::Cancel, false, Code::Cancelled);
        check(ErrorCode::RefusedStream, true, Code::Unavailable);
        // Found by simulation: GOAWAY of a server that restarts.
        check(ErrorCode::NoError, true, Code::Unavailable);
        check(ErrorCode::NoError, false, Code::Internal);
    }
}
