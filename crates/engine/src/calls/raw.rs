//! Raw calls: requests are sent, and responses returned, verbatim.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use thalweg_balance::service_config::MethodConfig;
use thalweg_core::timeout::{self, TimeoutValue};
use tokio::time::sleep_until;

use super::duplex::Duplex;
use super::prepared::{Prepared, within};
use super::unary;
use super::unary_attempt::{Arrived, AwaitedResponse, Outcome};
use crate::call_context::Phase;
use crate::channel::Channel;
use crate::connection::{Connection, End, Inbox, RawBody, RawLimits, RawReader, Slot, SlotKey, WakesOn};
use crate::grpc::envelope::SizeCheck;
use crate::grpc::response::ResponseHeaders;
use crate::options::CallOptions;
use crate::raw::{self, Front, OutgoingBody, Piece, Pieces, Trailers, check_received, check_sent};
use crate::request_headers::RawRequestHeaders;
use crate::service_settings::NotResolved;
use crate::status::{Code, Status};

impl Channel {
    /// Sends a raw request and returns the response once its headers have arrived; the body continues to be sent.
    /// Cancel-safe: dropping the future, or the response body before its end, cancels the call at the server.
    ///
    /// Only path and query of the URI are used; scheme and authority are the channel's. The caller sets `te` and the
    /// content type. Request trailers are not sent. The only options that apply are `wait_for_ready`, `affinity` and
    /// those of retries. Timeouts and size limits of the service config apply to gRPC calls; messages count as they are
    /// sent, compressed or not.
    ///
    /// # Errors
    /// Returns the reason there is no response. A response with an error status is not an error here.
    pub fn raw<B: OutgoingBody>(
        &self,
        request: Request<B>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<RawBody>, Status>> + Send + use<B> {
        // Done outside the future to keep it small: callers box it.
        let (mut parts, mut body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let fixed_headers = self.raw_request_headers(&parts.method, path, &parts.headers);
        let gathers = fixed_headers.is_grpc() || raw::is_grpc(&parts.headers);
        let body = match body.take_complete() {
            Some((piece, _)) => Ok(piece),
            None => Err(Some(Box::new(body))),
        };
        let settings = settings(self, &fixed_headers, options, gathers);
        let is_resolved = settings.is_ok();
        let (options, limits) = settings.ok().flatten().unwrap_or_else(|| (options.clone(), None));
        let (call, unresolved) = if is_resolved {
            (Some(prepare(self, &fixed_headers, &mut parts.headers, limits.as_deref())), None)
        } else {
            (None, Some(Box::new(parts.headers)))
        };
        let channel = self.clone();
        let mut sending =
            PendingRequest { channel, options, limits, fixed_headers, call, unresolved, body, gathers };
        // An `async fn` with `sending` as its parameter would store it twice.
        async move { sending.send().await }
    }
}

/// Limits of a gRPC call, set by the service config.
struct Limits {
    timeout: Option<Duration>,
    request_size_max: Option<usize>,
    response_size_max: Option<usize>,
}

impl Limits {
    /// Returns the limits, if the method has any.
    #[cold]
    fn of(config: &MethodConfig) -> Option<Box<Self>> {
        let (timeout, request_size_max) = (config.timeout, config.max_request_message_bytes);
        let limits = Self { timeout, request_size_max, response_size_max: config.max_response_message_bytes };
        (timeout.is_some() || request_size_max.is_some() || limits.response_size_max.is_some())
            .then(|| Box::new(limits))
    }

    /// Returns the timeout, if it is lower than the request's own, which it replaces. API layers of raw calls apply
    /// their requests' own timeouts.
    fn limit_timeout(&self, headers: &mut HeaderMap) -> Option<Duration> {
        let own = timeout::from_metadata(headers).ok().flatten();
        let timeout = self.timeout.filter(|timeout| own.is_none_or(|own| *timeout < own))?;
        let value = HeaderValue::from_bytes(TimeoutValue::new(timeout).as_bytes()).ok()?;
        headers.insert(timeout::NAME, value);
        Some(timeout)
    }

    fn check_request(&self) -> Option<SizeCheck> {
        self.request_size_max.map(SizeCheck::new)
    }

    fn check_response(&self) -> Option<SizeCheck> {
        self.response_size_max.map(SizeCheck::new)
    }

    /// Returns the limits for the reader of a response.
    fn of_reader(&self, call: &Prepared) -> RawLimits {
        let sleep = call.deadline.map(|deadline| Box::pin(sleep_until(deadline)));
        RawLimits { sizes: self.check_response(), sleep }
    }
}

/// The options and limits of a call.
type Configured = (CallOptions, Option<Box<Limits>>);

/// Returns the options and limits of a call by the service config, if its method has settings there.
#[inline]
fn settings(
    channel: &Channel,
    fixed_headers: &RawRequestHeaders,
    options: &CallOptions,
    gathers: bool,
) -> Result<Option<Configured>, NotResolved> {
    channel.method_settings(&fixed_headers.method, |config| {
        (options.with_method_config(config), gathers.then(|| Limits::of(config)).flatten())
    })
}

#[inline]
fn prepare(
    channel: &Channel,
    fixed_headers: &RawRequestHeaders,
    headers: &mut HeaderMap,
    limits: Option<&Limits>,
) -> Result<Prepared, Status> {
    let timeout = limits.and_then(|limits| limits.limit_timeout(headers));
    Prepared::raw(channel, fixed_headers, headers, timeout)
}

/// A request to be sent.
struct PendingRequest<B> {
    channel: Channel,
    options: CallOptions,
    limits: Option<Box<Limits>>,
    fixed_headers: Arc<RawRequestHeaders>,
    /// The error is the reason it cannot be sent. `None` until the channel has its first service config.
    call: Option<Result<Prepared, Status>>,
    /// The headers until then.
    unresolved: Option<Box<HeaderMap>>,
    /// The whole body, or its producer.
    body: Result<Piece, Option<Box<B>>>,
    gathers: bool,
}

impl<B> PendingRequest<B> {
    /// Waits for the channel's first service config. If the resolution fails, the call does when it looks for a
    /// connection.
    #[cold]
    async fn resolve(&mut self, mut headers: Box<HeaderMap>) {
        let Self { channel, options, limits, fixed_headers, gathers, .. } = self;
        channel.resolved(options.waits_for_ready()).await;
        if let Ok(Some(settings)) = settings(channel, fixed_headers, options, *gathers) {
            (*options, *limits) = settings;
        }
        self.call = Some(prepare(channel, fixed_headers, &mut headers, limits.as_deref()));
    }
}

impl<B: OutgoingBody> PendingRequest<B> {
    async fn send(&mut self) -> Result<Response<RawBody>, Status> {
        if let Some(headers) = self.unresolved.take() {
            Box::pin(self.resolve(headers)).await;
        }
        let Self { channel, options, limits, fixed_headers, call, body, gathers, .. } = self;
        let call = match call {
            Some(Ok(call)) => call,
            Some(Err(status)) => return Err(status.clone()),
            None => return Err(Status::local(Code::Internal, "the call was cancelled")),
        };
        let sending = Sending { channel, call, gathers: *gathers, options, limits: limits.as_deref() };
        // Pinned here so that this large future is not moved again. Most calls have no deadline.
        let sent = pin!(async {
            match body {
                Ok(body) => sending.send_complete(body).await,
                Err(body) => match body.take() {
                    Some(body) => Box::pin(sending.send_pieces(body)).await,
                    None => Err(Status::local(Code::Internal, "the body was already sent")),
                },
            }
        });
        let outcome = match call.deadline {
            None => sent.await,
            Some(_) if call.has_expired() => Err(call.expired()),
            deadline => Box::pin(within(deadline, sent)).await,
        };
        outcome.map_err(|status| {
            let status = call.failed(status, channel, &fixed_headers.method);
            call.measure.fail(&status);
            status
        })
    }
}

/// The parts of a call that is being sent.
#[derive(Clone, Copy)]
struct Sending<'a> {
    channel: &'a Channel,
    call: &'a Prepared,
    gathers: bool,
    options: &'a CallOptions,
    limits: Option<&'a Limits>,
}

impl Sending<'_> {
    /// Sends a body that may already be complete, which polling it shows.
    async fn send_pieces<B: OutgoingBody>(self, mut body: Box<B>) -> Result<Response<RawBody>, Status> {
        match poll_fn(|cx| Poll::Ready(Front::of(&mut *body, cx))).await {
            Ok(Front::Complete(piece, _)) => self.send_complete(&piece).await,
            Ok(Front::Started(pieces)) => {
                let sizes = self.limits.and_then(Limits::check_request);
                let body = Some(*body);
                self.send_stream(Pieces { first: pieces, body, trailers: Trailers::None, sizes }).await
            }
            Err(status) => {
                self.call.progress.note(Phase::Unsent);
                Err(status)
            }
        }
    }

    async fn send_complete(self, body: &Piece) -> Result<Response<RawBody>, Status> {
        let Self { channel, call, gathers, options, limits } = self;
        if let Some(mut sizes) = limits.and_then(Limits::check_request) {
            let checked = body.parts().try_for_each(|part| check_sent(&mut sizes, part));
            checked.inspect_err(|_| call.progress.note(Phase::Unsent))?;
        }
        match unary::attempts(channel, call, body, options, RawResponse { gathers }).await? {
            Outcome::Done(arrived) => {
                if let Some(mut sizes) = limits.and_then(Limits::check_response) {
                    check_received(&mut sizes, &arrived.body)?;
                }
                Ok(complete(arrived, call))
            }
            Outcome::Started(connection, key) => {
                let mut reader =
                    Box::new(RawReader::of_response(connection, key, gathers, call.measure.clone()));
                let headers = poll_fn(|cx| reader.poll_headers(cx)).await.map_err(status_of)?;
                Ok(self.response(&headers, reader))
            }
        }
    }

    async fn send_stream<B: OutgoingBody>(self, pieces: Pieces<B>) -> Result<Response<RawBody>, Status> {
        let Self { channel, call, gathers, options, .. } = self;
        let slot = |stream| {
            Slot::of_client(stream, RawResponse { gathers }.inbox(Vec::new()), RawResponse::WAKES_ON)
        };
        let read = |connection: &Arc<Connection>, key| {
            Box::new(RawReader::of_response(Arc::clone(connection), key, gathers, call.measure.clone()))
        };
        let (duplex, headers) = Duplex::start(channel, call, options, pieces, slot, read).await?;
        let headers = headers.map_err(status_of)?;
        Ok(self.response(&headers, duplex.into_response()))
    }

    /// Builds a response whose body is still to be read.
    fn response(self, headers: &ResponseHeaders, mut reader: Box<RawReader>) -> Response<RawBody> {
        if let Some(limits) = self.limits {
            reader.set_limits(limits.of_reader(self.call));
        }
        response(headers, RawBody::reader(reader))
    }
}

/// A response that is returned verbatim and may be read before its end. With `gathers` the body consists of gRPC
/// messages.
#[derive(Clone, Copy)]
struct RawResponse {
    gathers: bool,
}

impl AwaitedResponse for RawResponse {
    type Started = SlotKey;
    const MAY_HAVE_FAILED: bool = true;
    const WAKES_ON: WakesOn = WakesOn::Raw;

    fn inbox(self, buffer: Vec<u8>) -> Inbox {
        Inbox::raw(buffer, self.gathers)
    }

    fn started(key: SlotKey, slot: &mut Slot) -> Option<SlotKey> {
        slot.client()?.headers.as_ref().map(|_| key)
    }

    fn failure(arrived: &Arrived) -> Option<Status> {
        let headers = arrived.headers.as_ref()?;
        if arrived.body.is_empty() { headers.failure() } else { None }
    }
}

/// Builds a response that arrived together with its end.
fn complete(arrived: Arrived, call: &Prepared) -> Response<RawBody> {
    let Arrived { headers, body, trailers } = arrived;
    let trailers = trailers.map_or(Trailers::GrpcOk, |fields| Trailers::of(*fields));
    call.measure.received_message(body.len(), false);
    let Some(headers) = headers else {
        // Unreachable: a response always has headers.
        return Response::new(RawBody::default());
    };
    if call.measure.is_some() {
        call.measure.end(trailers.code(headers.http_status, &headers.metadata));
    }
    response(&headers, RawBody::complete(unary::into_bytes(body), trailers))
}

fn response(headers: &ResponseHeaders, body: RawBody) -> Response<RawBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(headers.http_status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.version_mut() = http::Version::HTTP_2;
    *response.headers_mut() = with_room(&headers.metadata);
    response
}

/// Copies `fields` with room for one more: the gRPC API layers add the status, and `HeaderMap::clone` leaves no room.
fn with_room(fields: &HeaderMap) -> HeaderMap {
    if fields.len() > 2 {
        return fields.clone();
    }
    let mut copy = HeaderMap::with_capacity(fields.len() + 1);
    copy.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    copy
}

fn status_of(end: End) -> Status {
    let missing = || Status::new(Code::Internal, "the server ended the response before its headers");
    end.outcome().err().unwrap_or_else(missing)
}
