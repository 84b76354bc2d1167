//! Descriptors from the server itself, by gRPC's [server reflection].
//!
//! [server reflection]: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md

mod limits;
mod response;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use prost::Message as _;
use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Channel, Code, Method, Request, Status, Stream, Streaming};
use thalweg_protobuf::{Schema, SchemaError, sources};
use thalweg_services::reflection::pb::ServerReflectionRequest;
use thalweg_services::reflection::pb::server_reflection_request::MessageRequest;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use limits::ReflectionLimits;
use response::{EncodedResponse, items, text};

/// The versions of the service, in the order in which they are tried.
const VERSIONS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Why a server's reflection does not say what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// The server has no reflection.
    #[error(
        "the server does not support reflection (grpc.reflection.v1 or v1alpha); use --proto or --protoset, or enable \
         reflection on the server"
    )]
    None,
    /// The call failed.
    #[error("reflection failed: {}: {}", .0.code(), .0.message())]
    Call(Box<Status>),
    /// The server broke the rules of the service.
    #[error("the server's reflection {0}")]
    Answer(String),
    /// The exchange reached one of the [`ReflectionLimits`].
    #[error("reflection aborted: {0}; use --proto or --protoset")]
    Limit(String),
    /// What it sent makes no schema.
    #[error("invalid descriptors from server reflection: {0}")]
    Schema(#[from] SchemaError),
}

impl From<Status> for ReflectionError {
    fn from(status: Status) -> Self {
        Self::Call(Box::new(status))
    }
}

/// A server's reflection, and all descriptors that it has sent so far.
///
/// Questions go over one stream, as the server may send each file once only.
#[derive(Debug)]
pub struct Reflection {
    channel: Channel,
    metadata: MetadataMap,
    limits: ReflectionLimits,
    /// Of [`VERSIONS`].
    version: usize,
    stream: Option<Conversation>,
    files: BTreeMap<String, File>,
    /// Of all files, unless there are new ones.
    schema: Option<Schema>,
    /// Imports that were not sent when the file that has them was, each with that file.
    missing: VecDeque<(String, String)>,
    used: Used,
}

/// What the exchange has taken of its limits.
#[derive(Debug, Default)]
struct Used {
    /// Spent waiting for responses.
    time: Duration,
    /// Of all responses.
    received_bytes: usize,
    /// Of the files that are kept.
    bytes: usize,
    imports: usize,
}

/// A call of the service.
#[derive(Debug)]
struct Conversation {
    questions: mpsc::Sender<ServerReflectionRequest>,
    responses: Streaming<EncodedResponse>,
}

#[derive(Debug)]
struct File {
    encoded: Bytes,
    /// Each once.
    imports: Vec<String>,
}

/// `google.protobuf.FileDescriptorSet`, its files left encoded.
#[derive(Clone, PartialEq, prost::Message)]
struct EncodedSet {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    file: Vec<Bytes>,
}

impl Reflection {
    /// Asks over `channel`, with `metadata`, within `limits`.
    pub fn new(channel: Channel, metadata: MetadataMap, limits: ReflectionLimits) -> Self {
        Self {
            channel,
            metadata,
            limits,
            version: 0,
            stream: None,
            files: BTreeMap::new(),
            schema: None,
            missing: VecDeque::new(),
            used: Used::default(),
        }
    }

    /// The names of all services, in the server's order.
    ///
    /// # Errors
    ///
    /// See [`ReflectionError`].
    pub async fn services(&mut self) -> Result<Vec<String>, ReflectionError> {
        let response = self.ask(MessageRequest::ListServices("*".to_owned())).await?;
        let Some(list) = &response.services else {
            return Err(unexpected("a list of services", &response));
        };
        let mut names = Vec::new();
        for service in items(list, response::SERVICE) {
            for name in items(&service.map_err(malformed)?, response::SERVICE_NAME) {
                if names.len() >= self.limits.files_max {
                    let max = self.limits.files_max;
                    return Err(ReflectionError::Limit(format!("the server lists more than {max} services")));
                }
                names.push(text(&name.map_err(malformed)?).map_err(malformed)?);
            }
        }
        Ok(names)
    }

    /// Fetches what declares `symbol`, a full name, and all that this imports. False if the server knows no such name.
    ///
    /// # Errors
    ///
    /// See [`ReflectionError`].
    pub async fn fetch(&mut self, symbol: &str) -> Result<bool, ReflectionError> {
        self.fetch_files(MessageRequest::FileContainingSymbol(symbol.to_owned())).await
    }

    /// What was fetched so far.
    ///
    /// # Errors
    ///
    /// If the files contradict each other.
    pub fn schema(&mut self) -> Result<Schema, ReflectionError> {
        if let Some(schema) = &self.schema {
            return Ok(schema.clone());
        }
        let schema = Schema::from_files(self.files.values().map(|file| &file.encoded[..]))?;
        Ok(self.schema.insert(schema).clone())
    }

    /// What was fetched so far, as an encoded `google.protobuf.FileDescriptorSet`, imports before those that import
    /// them.
    pub fn descriptor_set(&self) -> Vec<u8> {
        EncodedSet { file: self.in_order().into_iter().map(|file| file.encoded.clone()).collect() }
            .encode_to_vec()
    }

    async fn fetch_files(&mut self, question: MessageRequest) -> Result<bool, ReflectionError> {
        let response = self.ask(question).await?;
        match &response.error {
            Some(error) if error.error_code == Code::NotFound as i32 => return Ok(false),
            _ => self.take_files(&response)?,
        }
        while let Some((name, by)) = self.missing.pop_front() {
            if !self.files.contains_key(&name) {
                self.fetch_import(&name, &by).await?;
            }
        }
        Ok(true)
    }

    async fn fetch_import(&mut self, name: &str, by: &str) -> Result<(), ReflectionError> {
        let response = self.ask(MessageRequest::FileByFilename(name.to_owned())).await?;
        match &response.error {
            None => {
                self.take_files(&response)?;
                if self.files.contains_key(name) {
                    return Ok(());
                }
                Err(ReflectionError::Answer(format!("returned other files when asked for {name}")))
            }
            // Some servers do not have what every compiler brings.
            Some(_) if name.starts_with("google/protobuf/") => {
                let set = sources::compile(&[name], |_| None);
                let set = set.map_err(|error| {
                    ReflectionError::Answer(format!("does not have {name}, which {by} imports: {error}"))
                })?;
                self.take_each(&set.into(), response::SET_FILE)
            }
            Some(error) => Err(ReflectionError::Answer(format!(
                "does not have {name}, which {by} imports: {}",
                error.error_message
            ))),
        }
    }

    fn take_files(&mut self, response: &EncodedResponse) -> Result<(), ReflectionError> {
        match &response.files {
            Some(files) => self.take_each(files, response::FILE),
            None => Err(unexpected("a file", response)),
        }
    }

    fn take_each(&mut self, files: &Bytes, number: u32) -> Result<(), ReflectionError> {
        items(files, number).try_for_each(|file| self.take(file.map_err(malformed)?))
    }

    fn take(&mut self, encoded: Bytes) -> Result<(), ReflectionError> {
        let name = items(&encoded, response::FILE_NAME).last().transpose().map_err(malformed)?;
        let name = text(&name.unwrap_or_default()).map_err(malformed)?;
        if self.files.contains_key(&name) {
            return Ok(());
        }
        let limits = &self.limits;
        self.used.bytes += encoded.len();
        if self.files.len() >= limits.files_max || self.used.bytes > limits.bytes_max {
            let ReflectionLimits { files_max, bytes_max, .. } = limits;
            return Err(ReflectionError::Limit(format!(
                "the server has more than {files_max} files or {bytes_max} bytes of descriptors"
            )));
        }
        let mut imports = Vec::new();
        let mut seen = HashSet::new();
        for import in items(&encoded, response::FILE_DEPENDENCY) {
            let import = import.map_err(malformed)?;
            if !seen.insert(import.clone()) {
                continue;
            }
            self.used.imports += 1;
            if self.used.imports > limits.imports_max {
                let max = limits.imports_max;
                return Err(ReflectionError::Limit(format!(
                    "the server's files have more than {max} imports"
                )));
            }
            let import = text(&import).map_err(malformed)?;
            if !self.files.contains_key(&import) {
                self.missing.push_back((import.clone(), name.clone()));
            }
            imports.push(import);
        }
        self.files.insert(name, File { encoded, imports });
        self.schema = None;
        Ok(())
    }

    /// The files, imports before those that import them.
    fn in_order(&self) -> Vec<&File> {
        let mut ordered = Vec::new();
        let mut seen = BTreeSet::new();
        // Depth first, without recursion: a server may have a long chain of imports.
        for root in self.files.keys() {
            let mut path = vec![(root.as_str(), 0)];
            while let Some((name, next)) = path.pop() {
                if next == 0 && !seen.insert(name) {
                    continue;
                }
                let Some(file) = self.files.get(name) else { continue };
                match file.imports.get(next) {
                    Some(import) => path.extend([(name, next + 1), (import.as_str(), 0)]),
                    None => ordered.push(file),
                }
            }
        }
        ordered
    }

    /// The response to a question, by the newest version of the service that the server has.
    async fn ask(&mut self, question: MessageRequest) -> Result<EncodedResponse, ReflectionError> {
        let response = loop {
            match self.ask_within(question.clone()).await {
                Err(ReflectionError::Call(status)) if status.code() == Code::Unimplemented => {
                    self.stream = None;
                    self.version += 1;
                    if self.version >= VERSIONS.len() {
                        self.version = 0;
                        return Err(ReflectionError::None);
                    }
                }
                response => break response?,
            }
        };
        self.used.received_bytes += response.len();
        let max = self.limits.received_bytes_max;
        if self.used.received_bytes > max {
            return Err(ReflectionError::Limit(format!("the server sent more than {max} bytes")));
        }
        Ok(response)
    }

    /// Asks within the time for a response, and what is left of that for the whole exchange.
    async fn ask_within(&mut self, question: MessageRequest) -> Result<EncodedResponse, ReflectionError> {
        let ReflectionLimits { response_timeout, total_timeout, .. } = self.limits;
        let left = total_timeout.saturating_sub(self.used.time);
        let took_too_long = |files: usize| {
            let seconds = total_timeout.as_secs_f64();
            ReflectionError::Limit(format!("it took longer than {seconds} s, for {files} files so far"))
        };
        // A response that is there goes before a timer that is due, so the timer alone would not end it.
        if left.is_zero() {
            return Err(took_too_long(self.files.len()));
        }
        let asked_at = Instant::now();
        let response = tokio::time::timeout(response_timeout.min(left), self.ask_version(question)).await;
        self.used.time += asked_at.elapsed();
        match response {
            Ok(response) => Ok(response?),
            Err(_) if left < response_timeout => Err(took_too_long(self.files.len())),
            Err(_) => {
                Err(Status::deadline_exceeded(format!("no response within {response_timeout:?}")).into())
            }
        }
    }

    async fn ask_version(&mut self, question: MessageRequest) -> Result<EncodedResponse, Status> {
        let request = ServerReflectionRequest { message_request: Some(question), ..Default::default() };
        let stream = if let Some(stream) = &mut self.stream {
            // If nobody takes it any more, the stream's end says why.
            let _ = stream.questions.send(request).await;
            stream
        } else {
            let (questions, asked) = mpsc::channel(1);
            let _ = questions.send(request).await;
            let mut call = Request::new(Questions(asked));
            *call.metadata_mut() = self.metadata.clone();
            let method = Method::from_path(VERSIONS[self.version])
                .map_err(|error| Status::internal(error.to_string()))?;
            let mut options = CallOptions::default();
            options.max_decoding_message_size = self.limits.bytes_max;
            let response = self.channel.bidi_streaming(&method, call, &options).await?;
            self.stream.insert(Conversation { questions, responses: response.into_inner() })
        };
        let response = stream.responses.message().await?;
        let response = response.filter(|response| !response.is_empty());
        response.ok_or_else(|| Status::internal("the server sent no reflection response"))
    }
}

fn unexpected(what: &str, response: &EncodedResponse) -> ReflectionError {
    ReflectionError::Answer(match &response.error {
        Some(error) => {
            let code = Code::from_i32(error.error_code);
            format!("answered {code:?} when asked for {what}: {}", error.error_message)
        }
        None => format!("sent an unexpected response when asked for {what}"),
    })
}

fn malformed(error: impl fmt::Display) -> ReflectionError {
    ReflectionError::Answer(format!("sent an invalid file descriptor: {error}"))
}

/// What a call of the service sends.
struct Questions(mpsc::Receiver<ServerReflectionRequest>);

impl Stream for Questions {
    type Item = ServerReflectionRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerReflectionRequest>> {
        self.0.poll_recv(cx)
    }
}
