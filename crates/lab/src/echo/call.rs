//! One call of the work, by whichever protocol.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use thalweg::{Code, Status};
use thalweg_engine::{ChannelConfig, ConnectError};

use super::connection::{Answer, Connections, Http1};
use super::document::Document;
use super::moments::Moments;
use super::protocol::{Format, Protocol};
use super::stages::{ClientMoments, Stages, divide};
use super::work::EchoWork;
use crate::services::{TIMES, monotonic_ns};

/// So many letters of an answer that says what is wrong.
const QUOTED_LEN_MAX: usize = 200;

/// What is called again and again, and where.
#[derive(Debug)]
pub(crate) struct EchoCall {
    protocol: Protocol,
    times: bool,
    document: Document,
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
        let EchoWork { shape, protocol, times } = work;
        let mut head = Request::new(());
        *head.method_mut() = Method::POST;
        *head.uri_mut() = protocol.path(shape).parse().expect("the paths are constants");
        let asks = times.then_some((TIMES, "1"));
        for (name, value) in protocol.fields().iter().copied().chain(asks) {
            head.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let connections = connections(protocol, target, &channel)?;
        let document = Document::new(shape, protocol.format());
        Ok(Self { protocol, times, document, head, target: target.to_owned(), channel, connections })
    }

    /// The first call: its answer is compared as a whole.
    pub(crate) async fn first(&self) -> Result<(), Status> {
        let answer = self.exchange(&self.connections, self.document.encode()).await?;
        match self.document.decode_like(&answer.body) {
            Ok(answered) if answered == self.document => Ok(()),
            Ok(_) => Err(Status::data_loss("the answer is not what was asked")),
            Err(why) => Err(Status::data_loss(why)),
        }
    }

    /// One call, on a connection of its own if `afresh`. What its stages took, if it asks for times and the clocks are
    /// the same.
    pub(crate) async fn once(&self, afresh: bool) -> Result<Option<Stages>, Status> {
        if !afresh {
            return self.on(&self.connections).await;
        }
        let connections = connections(self.protocol, &self.target, &self.channel);
        self.on(&connections.map_err(|error| Status::internal(error.to_string()))?).await
    }

    async fn on(&self, connections: &Connections) -> Result<Option<Stages>, Status> {
        let moment = || if self.times { monotonic_ns() } else { 0 };
        let began = moment();
        let body = self.document.encode();
        let encoded = moment();
        let answer = self.exchange(connections, body).await?;
        let received = moment();
        let answered = self.document.decode_like(&answer.body).map_err(Status::data_loss)?;
        if !answered.is_alike(&self.document) {
            return Err(Status::data_loss("the answer is not as large as what was asked"));
        }
        let ended = moment();
        if !self.times {
            return Ok(None);
        }
        let times = answer.headers.get(TIMES).and_then(|value| value.to_str().ok()).and_then(Moments::parse);
        let times = times.ok_or_else(|| Status::data_loss("the server does not say its times"))?;
        Ok(divide(ClientMoments { began, encoded, received, ended }, times))
    }

    async fn exchange(&self, connections: &Connections, body: Bytes) -> Result<Answer, Status> {
        let (parts, ()) = self.head.clone().into_parts();
        let answer = connections.send(Request::from_parts(parts, body)).await?;
        match self.protocol.format() {
            Format::Envelope => grpc_status(&answer)?,
            Format::Json => http_status(&answer)?,
        }
        Ok(answer)
    }
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

fn grpc_status(answer: &Answer) -> Result<(), Status> {
    let fields = answer.trailers.as_ref().unwrap_or(&answer.headers);
    let code = fields.get("grpc-status").and_then(|value| value.to_str().ok()?.parse().ok());
    let message = fields.get("grpc-message").and_then(|value| value.to_str().ok()).unwrap_or_default();
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(Status::new(Code::from_i32(code), message)),
        None => Err(Status::unknown(format!("HTTP status {} without a status of gRPC", answer.status))),
    }
}

fn http_status(answer: &Answer) -> Result<(), Status> {
    if answer.status == StatusCode::OK {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&answer.body);
    let text: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(QUOTED_LEN_MAX).collect();
    Err(Status::unknown(format!("HTTP status {}: {text}", answer.status)))
}
