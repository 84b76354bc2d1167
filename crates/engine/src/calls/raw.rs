//! Raw calls: requests are sent, and responses returned, verbatim.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use http::{HeaderMap, Request, Response, StatusCode};

use super::duplex::Duplex;
use super::prepared::Prepared;
use super::unary;
use super::unary_attempt::{Arrived, AwaitedResponse, Outcome};
use crate::call_context::Phase;
use crate::channel::Channel;
use crate::connection::{Connection, End, Inbox, RawBody, RawReader, Slot, SlotKey, WakesOn};
use crate::grpc::response::ResponseHeaders;
use crate::options::CallOptions;
use crate::raw::{self, Front, OutgoingBody, Piece, Pieces, Trailers};
use crate::request_headers::RawRequestHeaders;
use crate::status::{Code, Status};

impl Channel {
    /// Sends a raw request and returns the response once its headers have arrived; the body continues to be sent.
    /// Cancel-safe: dropping the future, or the response body before its end, cancels the call at the server.
    ///
    /// Only path and query of the URI are used; scheme and authority are the channel's. The caller sets `te` and the
    /// content type. Request trailers are not sent. The only options that apply are `wait_for_ready` and `affinity`.
    ///
    /// # Errors
    /// Returns the reason there is no response. A response with an error status is not an error here.
    pub fn raw<B: OutgoingBody>(
        &self,
        request: Request<B>,
        options: &CallOptions,
    ) -> impl Future<Output = Result<Response<RawBody>, Status>> + Send + use<B> {
        // Done outside the future to keep it small: callers box it.
        let (parts, mut body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let fixed_headers = self.raw_request_headers(&parts.method, path, &parts.headers);
        let call = Prepared::raw(self, &fixed_headers, &parts.headers);
        let gathers = fixed_headers.is_grpc() || raw::is_grpc(&parts.headers);
        let body = match body.take_complete() {
            Some((bytes, _)) => Ok(Piece(bytes)),
            None => Err(Some(Box::new(body))),
        };
        let configured = self.configured(&fixed_headers.method, options);
        let is_resolved = configured.is_ok();
        let configured = configured.unwrap_or_default();
        let options = configured.map_or_else(|| options.clone(), |configured| *configured);
        let channel = self.clone();
        let mut sending =
            PendingRequest { channel, options, is_resolved, fixed_headers, call, body, gathers };
        // An `async fn` with `sending` as its parameter would store it twice.
        async move { sending.send().await }
    }
}

/// A request to be sent.
struct PendingRequest<B> {
    channel: Channel,
    options: CallOptions,
    /// Whether the options have the settings of the service config.
    is_resolved: bool,
    fixed_headers: Arc<RawRequestHeaders>,
    /// The error is the reason it cannot be sent.
    call: Result<Prepared, Status>,
    /// The whole body, or its producer.
    body: Result<Piece, Option<Box<B>>>,
    gathers: bool,
}

impl<B: OutgoingBody> PendingRequest<B> {
    async fn send(&mut self) -> Result<Response<RawBody>, Status> {
        let Self { channel, options, is_resolved, fixed_headers, call, body, gathers } = self;
        if !*is_resolved {
            let (method, metadata) = (&fixed_headers.method, HeaderMap::new());
            *options = *Box::pin(channel.when_configured(method, &metadata, options)).await;
        }
        let call = match call {
            Ok(call) => call,
            Err(status) => return Err(status.clone()),
        };
        let outcome = match body {
            Ok(body) => send_complete(channel, call, body, *gathers, options).await,
            Err(body) => match body.take() {
                Some(body) => Box::pin(send_pieces(channel, call, body, *gathers, options)).await,
                None => Err(Status::internal("the body was already sent")),
            },
        };
        outcome.map_err(|status| {
            let status = call.failed(status, channel, &fixed_headers.method);
            call.measure.fail(&status);
            status
        })
    }
}

/// Sends a body that may already be complete, which polling it shows.
async fn send_pieces<B: OutgoingBody>(
    channel: &Channel,
    call: &Prepared,
    mut body: Box<B>,
    gathers: bool,
    options: &CallOptions,
) -> Result<Response<RawBody>, Status> {
    match poll_fn(|cx| Poll::Ready(Front::of(&mut *body, cx))).await {
        Ok(Front::Complete(bytes, _)) => send_complete(channel, call, &Piece(bytes), gathers, options).await,
        Ok(Front::Started(pieces)) => {
            let source = Pieces { first: pieces, body: Some(*body), trailers: Trailers::None };
            send_stream(channel, call, source, gathers, options).await
        }
        Err(status) => {
            call.progress.note(Phase::Unsent);
            Err(status)
        }
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

async fn send_complete(
    channel: &Channel,
    call: &Prepared,
    body: &Piece,
    gathers: bool,
    options: &CallOptions,
) -> Result<Response<RawBody>, Status> {
    match unary::attempts(channel, call, body, options, RawResponse { gathers }).await? {
        Outcome::Done(arrived) => Ok(complete(arrived, call)),
        Outcome::Started(connection, key) => {
            let mut reader = Box::new(RawReader::of_response(connection, key, gathers, call.measure.clone()));
            let headers = poll_fn(|cx| reader.poll_headers(cx)).await.map_err(status_of)?;
            Ok(response(&headers, RawBody::reader(reader)))
        }
    }
}

async fn send_stream<B: OutgoingBody>(
    channel: &Channel,
    call: &Prepared,
    pieces: Pieces<B>,
    gathers: bool,
    options: &CallOptions,
) -> Result<Response<RawBody>, Status> {
    let slot =
        |stream| Slot::of_client(stream, RawResponse { gathers }.inbox(Vec::new()), RawResponse::WAKES_ON);
    let read = |connection: &Arc<Connection>, key| {
        Box::new(RawReader::of_response(Arc::clone(connection), key, gathers, call.measure.clone()))
    };
    let (duplex, headers) = Duplex::start(channel, call, options, pieces, slot, read).await?;
    let headers = headers.map_err(status_of)?;
    Ok(response(&headers, RawBody::reader(duplex.into_response())))
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
