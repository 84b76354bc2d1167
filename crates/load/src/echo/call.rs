//! One call of the workload, over any protocol.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use thalweg::Status;
use thalweg_engine::{ChannelConfig, ConnectError};

use super::body::Bodies;
use super::connection::{Connections, EchoResponse, Http1};
use super::document::Document;
use super::own::OwnEcho;
use super::protocol::Protocol;
use super::stages::{ClientTimestamps, Stages, divide};
use super::timestamps::ServerTimestamps;
use super::work::{ClientWork, EchoWork};
use crate::services::{TIMESTAMPS_KEY, monotonic_ns};

/// The target and the documents to send.
#[derive(Debug)]
pub struct EchoCall {
    work: EchoWork,
    /// Sent in turn; at least one.
    sent: Vec<Sent>,
    /// Index of the next one.
    turn: AtomicUsize,
    bodies: Bodies,
    /// The request without its body.
    head: Request<()>,
    target: String,
    channel: ChannelConfig,
    connections: Connections,
}

/// A document that is sent repeatedly.
#[derive(Debug)]
struct Sent {
    document: Document,
    /// The document's encoding.
    request: Bytes,
    /// Body length of its first response.
    response_len: OnceLock<usize>,
}

impl EchoCall {
    /// Creates a call without connecting.
    ///
    /// # Errors
    ///
    /// If the target is invalid.
    pub(crate) fn new(
        work: EchoWork,
        own: Option<&OwnEcho>,
        target: &str,
        channel: ChannelConfig,
    ) -> Result<Self, ConnectError> {
        let EchoWork { shape, protocol, client_work, gzip } = work;
        let bodies = Bodies::new(protocol, gzip);
        let mut head = Request::new(());
        *head.method_mut() = Method::POST;
        *head.uri_mut() = protocol.path(shape).parse().expect("the paths are constants");
        let timestamps_header = (client_work == ClientWork::Times).then_some((TIMESTAMPS_KEY, "1"));
        for (name, value) in protocol.fields().iter().chain(bodies.fields()).copied().chain(timestamps_header)
        {
            head.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let connections = connections(protocol, target, &channel)?;
        let sent =
            |document| Sent { request: bodies.encode(&document), document, response_len: OnceLock::new() };
        Ok(Self {
            work,
            sent: Document::all(shape, protocol.format(), own).into_iter().map(sent).collect(),
            turn: AtomicUsize::new(0),
            bodies,
            head,
            target: target.to_owned(),
            channel,
            connections,
        })
    }

    /// Makes the first call, and compares the whole response with the request.
    pub(crate) async fn first(&self) -> Result<(), Status> {
        let sent = self.next();
        let response = self.exchange(&self.connections, sent.request.clone()).await?;
        if self.bodies.decode(&response, &sent.document)? != sent.document {
            return Err(Status::data_loss("the response does not match the request"));
        }
        sent.response_len.get_or_init(|| response.body.len());
        Ok(())
    }

    /// Returns the body bytes of `calls` calls, sent and received. The first call must have completed.
    pub(crate) fn body_bytes(&self, calls: u64) -> (u64, u64) {
        let requests = self.sent.iter().map(|sent| sent.request.len() as u64);
        let responses = self.sent.iter().filter_map(|sent| Some(*sent.response_len.get()? as u64));
        (bytes_of_calls(calls, requests), bytes_of_calls(calls, responses))
    }

    fn next(&self) -> &Sent {
        match self.sent.as_slice() {
            [only] => only,
            several => &several[self.turn.fetch_add(1, Relaxed) % several.len()],
        }
    }

    /// Makes one call, on its own connection if `new_connection`. Returns the duration of its stages, if times are
    /// requested and both sides use the same clock.
    pub(crate) async fn once(&self, new_connection: bool) -> Result<Option<Stages>, Status> {
        if !new_connection {
            return self.on(&self.connections).await;
        }
        let connections = connections(self.work.protocol, &self.target, &self.channel);
        self.on(&connections.map_err(|error| Status::internal(error.to_string()))?).await
    }

    async fn on(&self, connections: &Connections) -> Result<Option<Stages>, Status> {
        match self.work.client_work {
            ClientWork::Bytes => self.bytes_on(connections).await.map(|()| None),
            ClientWork::Objects => self.objects_on(connections, || 0).await.map(|_| None),
            ClientWork::Times => {
                let (client, response) = self.objects_on(connections, monotonic_ns).await?;
                let times = response.headers.get(TIMESTAMPS_KEY).and_then(|value| value.to_str().ok());
                let times = times.and_then(ServerTimestamps::parse);
                let times =
                    times.ok_or_else(|| Status::data_loss("the server did not report its timestamps"))?;
                Ok(divide(client, times))
            }
        }
    }

    async fn bytes_on(&self, connections: &Connections) -> Result<(), Status> {
        let sent = self.next();
        let response = self.exchange(connections, sent.request.clone()).await?;
        self.bodies.check(&response)?;
        let len = *sent.response_len.get_or_init(|| response.body.len());
        // Maps are unordered, and their order changes the gzip size.
        if len == response.body.len() || self.work.gzip { Ok(()) } else { Err(mismatch()) }
    }

    /// Makes a call from object to object. Returns the time of each step.
    async fn objects_on(
        &self,
        connections: &Connections,
        now: fn() -> i64,
    ) -> Result<(ClientTimestamps, EchoResponse), Status> {
        let sent = self.next();
        let began = now();
        let body = self.bodies.encode(&sent.document);
        let encoded = now();
        let response = self.exchange(connections, body).await?;
        let received = now();
        let echoed = self.bodies.decode(&response, &sent.document)?;
        if !echoed.is_alike(&sent.document) {
            return Err(mismatch());
        }
        let ended = now();
        sent.response_len.get_or_init(|| response.body.len());
        Ok((ClientTimestamps { began, encoded, received, ended }, response))
    }

    async fn exchange(&self, connections: &Connections, body: Bytes) -> Result<EchoResponse, Status> {
        let (parts, ()) = self.head.clone().into_parts();
        connections.send(Request::from_parts(parts, body)).await
    }
}

/// Returns the total bytes of `calls` calls that use these lengths in turn.
fn bytes_of_calls(calls: u64, lens: impl Iterator<Item = u64>) -> u64 {
    let (sum, count) = lens.fold((0, 0), |(sum, count), len| (sum + len, count + 1));
    calls * sum / u64::max(count, 1)
}

fn mismatch() -> Status {
    Status::data_loss("the response does not have the expected size")
}

fn connections(
    protocol: Protocol,
    target: &str,
    config: &ChannelConfig,
) -> Result<Connections, ConnectError> {
    if protocol.is_http1() {
        return Ok(Connections::Http1(Http1::new(target.to_owned())));
    }
    thalweg_engine::Channel::new(target, config.clone()).map(Connections::H2)
}
