//! Descriptors from the server by gRPC [server reflection].
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

/// Versions of the service, in the order of attempts.
const VERSIONS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Error of server reflection.
#[derive(Debug, thiserror::Error)]
pub enum ReflectionError {
    /// The server does not support reflection.
    #[error(
        "the server does not support reflection (grpc.reflection.v1 or v1alpha); use --proto or --protoset, or enable \
         reflection on the server"
    )]
    Unsupported,
    /// The call failed.
    #[error("reflection failed: {}: {}", .0.code(), .0.message())]
    Call(Box<Status>),
    /// The server violated the protocol.
    #[error("the server's reflection {0}")]
    InvalidResponse(String),
    /// The exchange reached one of the [`ReflectionLimits`].
    #[error("reflection aborted: {0}; use --proto or --protoset")]
    Limit(String),
    /// The descriptors are invalid.
    #[error("invalid descriptors from server reflection: {0}")]
    Schema(#[from] SchemaError),
}

impl From<Status> for ReflectionError {
    fn from(status: Status) -> Self {
        Self::Call(Box::new(status))
    }
}

/// Client of a server's reflection with all descriptors received so far.
///
/// Requests share a stream, because servers may send each file only once per stream.
#[derive(Debug)]
pub struct Reflection {
    channel: Channel,
    metadata: MetadataMap,
    limits: ReflectionLimits,
    /// Index into [`VERSIONS`].
    version: usize,
    stream: Option<ReflectionCall>,
    files: BTreeMap<String, File>,
    /// Schema of all files. `None` after new files.
    schema: Option<Schema>,
    /// Names of imports not received yet, each with the importing file.
    missing: VecDeque<(String, String)>,
    usage: LimitUsage,
}

/// Usage of the limits.
#[derive(Debug, Default)]
struct LimitUsage {
    /// Time spent waiting for responses.
    time: Duration,
    /// Size of all responses.
    received_bytes: usize,
    /// Size of all kept files.
    bytes: usize,
    imports: usize,
}

/// An open call of the service.
#[derive(Debug)]
struct ReflectionCall {
    requests: mpsc::Sender<ServerReflectionRequest>,
    responses: Streaming<EncodedResponse>,
}

#[derive(Debug)]
struct File {
    encoded: Bytes,
    /// Imports without duplicates.
    imports: Vec<String>,
}

/// `google.protobuf.FileDescriptorSet` with encoded files.
#[derive(Clone, PartialEq, prost::Message)]
struct EncodedSet {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    file: Vec<Bytes>,
}

impl Reflection {
    /// Creates a client on `channel` that sends `metadata` and enforces `limits`.
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
            usage: LimitUsage::default(),
        }
    }

    /// Returns the names of all services in the server's order.
    ///
    /// # Errors
    ///
    /// See [`ReflectionError`].
    pub async fn services(&mut self) -> Result<Vec<String>, ReflectionError> {
        let response = self.request(MessageRequest::ListServices("*".to_owned())).await?;
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

    /// Fetches the file that declares `symbol`, a full name, with its imports. Returns false if the symbol is unknown.
    ///
    /// # Errors
    ///
    /// See [`ReflectionError`].
    pub async fn fetch(&mut self, symbol: &str) -> Result<bool, ReflectionError> {
        self.fetch_files(MessageRequest::FileContainingSymbol(symbol.to_owned())).await
    }

    /// Returns the schema of all files fetched so far.
    ///
    /// # Errors
    ///
    /// Returns an error if files are inconsistent.
    pub fn schema(&mut self) -> Result<Schema, ReflectionError> {
        if let Some(schema) = &self.schema {
            return Ok(schema.clone());
        }
        let schema = Schema::from_files(self.files.values().map(|file| &file.encoded[..]))?;
        Ok(self.schema.insert(schema).clone())
    }

    /// Returns all files fetched so far as an encoded `google.protobuf.FileDescriptorSet`. Imports precede importing
    /// files.
    pub fn descriptor_set(&self) -> Vec<u8> {
        EncodedSet { file: self.in_order().into_iter().map(|file| file.encoded.clone()).collect() }
            .encode_to_vec()
    }

    async fn fetch_files(&mut self, request: MessageRequest) -> Result<bool, ReflectionError> {
        let response = self.request(request).await?;
        match &response.error {
            Some(error) if error.error_code == Code::NotFound as i32 => return Ok(false),
            _ => self.add_response_files(&response)?,
        }
        while let Some((name, by)) = self.missing.pop_front() {
            if !self.files.contains_key(&name) {
                self.fetch_import(&name, &by).await?;
            }
        }
        Ok(true)
    }

    async fn fetch_import(&mut self, name: &str, by: &str) -> Result<(), ReflectionError> {
        let response = self.request(MessageRequest::FileByFilename(name.to_owned())).await?;
        match &response.error {
            None => {
                self.add_response_files(&response)?;
                if self.files.contains_key(name) {
                    return Ok(());
                }
                Err(ReflectionError::InvalidResponse(format!("returned other files for {name}")))
            }
            // Some servers lack well-known files, which every compiler includes.
            Some(_) if name.starts_with("google/protobuf/") => {
                let set = sources::compile(&[name], |_| None);
                let set = set.map_err(|error| {
                    ReflectionError::InvalidResponse(format!(
                        "does not have {name}, which {by} imports: {error}"
                    ))
                })?;
                self.add_files(&set.into(), response::SET_FILE)
            }
            Some(error) => Err(ReflectionError::InvalidResponse(format!(
                "does not have {name}, which {by} imports: {}",
                error.error_message
            ))),
        }
    }

    fn add_response_files(&mut self, response: &EncodedResponse) -> Result<(), ReflectionError> {
        match &response.files {
            Some(files) => self.add_files(files, response::FILE),
            None => Err(unexpected("a file", response)),
        }
    }

    fn add_files(&mut self, files: &Bytes, number: u32) -> Result<(), ReflectionError> {
        items(files, number).try_for_each(|file| self.add_file(file.map_err(malformed)?))
    }

    fn add_file(&mut self, encoded: Bytes) -> Result<(), ReflectionError> {
        let name = items(&encoded, response::FILE_NAME).last().transpose().map_err(malformed)?;
        let name = text(&name.unwrap_or_default()).map_err(malformed)?;
        if self.files.contains_key(&name) {
            return Ok(());
        }
        let limits = &self.limits;
        self.usage.bytes += encoded.len();
        if self.files.len() >= limits.files_max || self.usage.bytes > limits.bytes_max {
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
            self.usage.imports += 1;
            if self.usage.imports > limits.imports_max {
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

    /// Returns the files with imports before importing files.
    fn in_order(&self) -> Vec<&File> {
        let mut ordered = Vec::new();
        let mut seen = BTreeSet::new();
        // Depth first without recursion, because import chains may be long.
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

    /// Sends a request to the newest version that the server supports, and returns the response.
    async fn request(&mut self, request: MessageRequest) -> Result<EncodedResponse, ReflectionError> {
        let response = loop {
            match self.request_with_timeout(request.clone()).await {
                Err(ReflectionError::Call(status)) if status.code() == Code::Unimplemented => {
                    self.stream = None;
                    self.version += 1;
                    if self.version >= VERSIONS.len() {
                        self.version = 0;
                        return Err(ReflectionError::Unsupported);
                    }
                }
                response => break response?,
            }
        };
        self.usage.received_bytes += response.len();
        let max = self.limits.received_bytes_max;
        if self.usage.received_bytes > max {
            return Err(ReflectionError::Limit(format!("the server sent more than {max} bytes")));
        }
        Ok(response)
    }

    /// Sends a request within the response timeout and the rest of the total timeout.
    async fn request_with_timeout(
        &mut self,
        request: MessageRequest,
    ) -> Result<EncodedResponse, ReflectionError> {
        let ReflectionLimits { response_timeout, total_timeout, .. } = self.limits;
        let left = total_timeout.saturating_sub(self.usage.time);
        let took_too_long = |files: usize| {
            let seconds = total_timeout.as_secs_f64();
            ReflectionError::Limit(format!(
                "it took longer than {seconds} s and returned {files} files so far"
            ))
        };
        // A timeout would not fire if the response is ready, so the total limit is checked here.
        if left.is_zero() {
            return Err(took_too_long(self.files.len()));
        }
        let sent_at = Instant::now();
        let response = tokio::time::timeout(response_timeout.min(left), self.request_version(request)).await;
        self.usage.time += sent_at.elapsed();
        match response {
            Ok(response) => Ok(response?),
            Err(_) if left < response_timeout => Err(took_too_long(self.files.len())),
            Err(_) => {
                Err(Status::deadline_exceeded(format!("no response within {response_timeout:?}")).into())
            }
        }
    }

    async fn request_version(&mut self, request: MessageRequest) -> Result<EncodedResponse, Status> {
        let request = ServerReflectionRequest { message_request: Some(request), ..Default::default() };
        let stream = if let Some(stream) = &mut self.stream {
            // If sending fails, the end of the stream has the reason.
            let _ = stream.requests.send(request).await;
            stream
        } else {
            let (requests, receiver) = mpsc::channel(1);
            let _ = requests.send(request).await;
            let mut call = Request::new(ReflectionRequests(receiver));
            *call.metadata_mut() = self.metadata.clone();
            let method = Method::from_path(VERSIONS[self.version])
                .map_err(|error| Status::internal(error.to_string()))?;
            let mut options = CallOptions::default();
            options.max_decoding_message_size = self.limits.bytes_max;
            let response = self.channel.bidi_streaming(&method, call, &options).await?;
            self.stream.insert(ReflectionCall { requests, responses: response.into_inner() })
        };
        let response = stream.responses.message().await?;
        let response = response.filter(|response| !response.is_empty());
        response.ok_or_else(|| Status::internal("the server sent no reflection response"))
    }
}

fn unexpected(what: &str, response: &EncodedResponse) -> ReflectionError {
    ReflectionError::InvalidResponse(match &response.error {
        Some(error) => {
            let code = Code::from_i32(error.error_code);
            format!("returned {code:?} for {what}: {}", error.error_message)
        }
        None => format!("sent an unexpected response for {what}"),
    })
}

fn malformed(error: impl fmt::Display) -> ReflectionError {
    ReflectionError::InvalidResponse(format!("sent an invalid file descriptor: {error}"))
}

/// Requests of a call.
struct ReflectionRequests(mpsc::Receiver<ServerReflectionRequest>);

impl Stream for ReflectionRequests {
    type Item = ServerReflectionRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerReflectionRequest>> {
        self.0.poll_recv(cx)
    }
}
