//! One call of the work, by whichever protocol.

use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request};
use thalweg::Status;
use thalweg_engine::{ChannelConfig, ConnectError};

use super::body::Bodies;
use super::connection::{Answer, Connections, Http1};
use super::document::Document;
use super::moments::Moments;
use super::protocol::Protocol;
use super::stages::{ClientMoments, Stages, divide};
use super::work::{EchoWork, Looks};
use crate::services::{TIMES, monotonic_ns};

/// What is called again and again, and where.
#[derive(Debug)]
pub(crate) struct EchoCall {
    work: EchoWork,
    document: Document,
    bodies: Bodies,
    /// The document's bytes, made once.
    request: Bytes,
    /// How long the body of the first answer was.
    answer_len: OnceLock<usize>,
    /// The request, but for its body.
    head: Request<()>,
    target: String,
    channel: ChannelConfig,
    connections: Connections,
}

impl EchoCall {
    /// # Errors
    /// When the target cannot be read. Whether there is a server is not looked at.
    pub(crate) fn new(work: EchoWork, target: &str, channel: ChannelConfig) -> Result<Self, ConnectError> {
        let EchoWork { shape, protocol, looks, gzip } = work;
        let bodies = Bodies::new(protocol, gzip);
        let mut head = Request::new(());
        *head.method_mut() = Method::POST;
        *head.uri_mut() = protocol.path(shape).parse().expect("the paths are constants");
        let asks = (looks == Looks::Times).then_some((TIMES, "1"));
        for (name, value) in protocol.fields().iter().chain(bodies.fields()).copied().chain(asks) {
            head.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let connections = connections(protocol, target, &channel)?;
        let document = Document::new(shape, protocol.format());
        Ok(Self {
            work,
            request: bodies.encode(&document),
            document,
            bodies,
            answer_len: OnceLock::new(),
            head,
            target: target.to_owned(),
            channel,
            connections,
        })
    }

    /// The first call: its answer is compared as a whole.
    pub(crate) async fn first(&self) -> Result<(), Status> {
        let answer = self.exchange(&self.connections, self.request.clone()).await?;
        if self.bodies.decode(&answer, &self.document)? != self.document {
            return Err(Status::data_loss("the answer is not what was asked"));
        }
        self.answer_len.get_or_init(|| answer.body.len());
        Ok(())
    }

    /// Bytes of the bodies of a call, there and back; known when the first call has been answered.
    pub(crate) fn body_lens(&self) -> (u64, u64) {
        (self.request.len() as u64, self.answer_len.get().map_or(0, |&len| len as u64))
    }

    /// One call, on a connection of its own if `afresh`. What its stages took, if it asks for times and the clocks are
    /// the same.
    pub(crate) async fn once(&self, afresh: bool) -> Result<Option<Stages>, Status> {
        if !afresh {
            return self.on(&self.connections).await;
        }
        let connections = connections(self.work.protocol, &self.target, &self.channel);
        self.on(&connections.map_err(|error| Status::internal(error.to_string()))?).await
    }

    async fn on(&self, connections: &Connections) -> Result<Option<Stages>, Status> {
        match self.work.looks {
            Looks::Bytes => self.bytes_on(connections).await.map(|()| None),
            Looks::Objects => self.objects_on(connections, || 0).await.map(|_| None),
            Looks::Times => {
                let (client, answer) = self.objects_on(connections, monotonic_ns).await?;
                let times = answer.headers.get(TIMES).and_then(|value| value.to_str().ok());
                let times = times.and_then(Moments::parse);
                let times = times.ok_or_else(|| Status::data_loss("the server does not say its times"))?;
                Ok(divide(client, times))
            }
        }
    }

    async fn bytes_on(&self, connections: &Connections) -> Result<(), Status> {
        let answer = self.exchange(connections, self.request.clone()).await?;
        self.bodies.check(&answer)?;
        match self.answer_len.get() {
            Some(&len) if len != answer.body.len() => Err(unlike()),
            _ => Ok(()),
        }
    }

    /// Object to object, and when what came of it was there.
    async fn objects_on(
        &self,
        connections: &Connections,
        now: fn() -> i64,
    ) -> Result<(ClientMoments, Answer), Status> {
        let began = now();
        let body = self.bodies.encode(&self.document);
        let encoded = now();
        let answer = self.exchange(connections, body).await?;
        let received = now();
        let answered = self.bodies.decode(&answer, &self.document)?;
        if !answered.is_alike(&self.document) {
            return Err(unlike());
        }
        let ended = now();
        Ok((ClientMoments { began, encoded, received, ended }, answer))
    }

    async fn exchange(&self, connections: &Connections, body: Bytes) -> Result<Answer, Status> {
        let (parts, ()) = self.head.clone().into_parts();
        connections.send(Request::from_parts(parts, body)).await
    }
}

fn unlike() -> Status {
    Status::data_loss("the answer is not as large as what was asked")
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
