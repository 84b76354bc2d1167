//! Descriptors from the server itself, by gRPC's [server reflection].
//!
//! [server reflection]: https://github.com/grpc/grpc/blob/master/doc/server-reflection.md

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use prost::Message as _;
use thalweg::bytes::Bytes;
use thalweg::metadata::MetadataMap;
use thalweg::{CallOptions, Channel, Code, Method, Request, Status, Stream, Streaming};
use thalweg_protobuf::{Schema, SchemaError, sources};
use thalweg_services::reflection::pb::server_reflection_request::MessageRequest;
use thalweg_services::reflection::pb::server_reflection_response::MessageResponse;
use thalweg_services::reflection::pb::{ServerReflectionRequest, ServerReflectionResponse};
use tokio::sync::mpsc;

/// More files than these are not taken from a server.
const FILES_MAX: usize = 10_000;
/// Nor more bytes of them, in all and in one answer.
const BYTES_MAX: usize = 64 << 20;

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
        "the server has no reflection, neither grpc.reflection.v1 nor v1alpha: give descriptors by --proto FILE and -i \
         FOLDER, or by --protoset, or enable it there"
    )]
    None,
    /// The call failed.
    #[error("reflection failed: {}: {}", .0.code(), .0.message())]
    Call(Box<Status>),
    /// The server broke the rules of the service.
    #[error("the server's reflection {0}")]
    Answer(String),
    /// What it sent makes no schema.
    #[error("the descriptors that the server's reflection sent are not right: {0}")]
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
    /// For each answer.
    patience: Duration,
    /// Of [`VERSIONS`].
    version: usize,
    stream: Option<Conversation>,
    files: BTreeMap<String, File>,
    bytes: usize,
}

/// A call of the service.
#[derive(Debug)]
struct Conversation {
    questions: mpsc::Sender<ServerReflectionRequest>,
    answers: Streaming<ServerReflectionResponse>,
}

#[derive(Debug)]
struct File {
    encoded: Bytes,
    imports: Vec<String>,
}

/// What is needed of a `google.protobuf.FileDescriptorProto` here.
#[derive(Clone, PartialEq, prost::Message)]
struct FileHead {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "3")]
    dependency: Vec<String>,
}

/// `google.protobuf.FileDescriptorSet`, its files left encoded.
#[derive(Clone, PartialEq, prost::Message)]
struct EncodedSet {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    file: Vec<Bytes>,
}

impl Reflection {
    /// Asks over `channel`, with `metadata`, for which answers are waited for `patience`.
    pub fn new(channel: Channel, metadata: MetadataMap, patience: Duration) -> Self {
        Self { channel, metadata, patience, version: 0, stream: None, files: BTreeMap::new(), bytes: 0 }
    }

    /// The names of all services, in the server's order.
    ///
    /// # Errors
    ///
    /// See [`ReflectionError`].
    pub async fn services(&mut self) -> Result<Vec<String>, ReflectionError> {
        match self.ask(MessageRequest::ListServices("*".to_owned())).await? {
            MessageResponse::ListServicesResponse(list) => {
                Ok(list.service.into_iter().map(|service| service.name).collect())
            }
            other => Err(unexpected("a list of services", &other)),
        }
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
    pub fn schema(&self) -> Result<Schema, ReflectionError> {
        Ok(Schema::from_files(self.files.values().map(|file| &file.encoded[..]))?)
    }

    /// What was fetched so far, as an encoded `google.protobuf.FileDescriptorSet`, imports before those that import
    /// them.
    pub fn descriptor_set(&self) -> Vec<u8> {
        EncodedSet { file: self.in_order().into_iter().map(|file| file.encoded.clone()).collect() }
            .encode_to_vec()
    }

    async fn fetch_files(&mut self, question: MessageRequest) -> Result<bool, ReflectionError> {
        match self.ask(question).await? {
            MessageResponse::FileDescriptorResponse(files) => {
                for encoded in files.file_descriptor_proto {
                    self.take(encoded)?;
                }
            }
            MessageResponse::ErrorResponse(error) if error.error_code == Code::NotFound as i32 => {
                return Ok(false);
            }
            other => return Err(unexpected("a file", &other)),
        }
        // What the answer left out.
        while let Some((name, by)) = self.missing() {
            self.fetch_import(&name, &by).await?;
        }
        Ok(true)
    }

    async fn fetch_import(&mut self, name: &str, by: &str) -> Result<(), ReflectionError> {
        match self.ask(MessageRequest::FileByFilename(name.to_owned())).await? {
            MessageResponse::FileDescriptorResponse(files) => {
                for encoded in files.file_descriptor_proto {
                    self.take(encoded)?;
                }
                if self.files.contains_key(name) {
                    return Ok(());
                }
                Err(ReflectionError::Answer(format!("was asked for {name} and sent other files")))
            }
            // Some servers do not have what every compiler brings.
            MessageResponse::ErrorResponse(_) if name.starts_with("google/protobuf/") => {
                let set = sources::compile(&[name], |_| None);
                let set = set.map_err(|error| {
                    ReflectionError::Answer(format!("does not have {name}, which {by} imports: {error}"))
                })?;
                self.take_set(&set)
            }
            MessageResponse::ErrorResponse(error) => Err(ReflectionError::Answer(format!(
                "does not have {name}, which {by} imports: {}",
                error.error_message
            ))),
            other => Err(unexpected("a file", &other)),
        }
    }

    fn take_set(&mut self, set: &[u8]) -> Result<(), ReflectionError> {
        let set = EncodedSet::decode(set);
        let set =
            set.map_err(|error| ReflectionError::Answer(format!("sent a file that is none: {error}")))?;
        set.file.into_iter().try_for_each(|file| self.take(file))
    }

    fn take(&mut self, encoded: Bytes) -> Result<(), ReflectionError> {
        let FileHead { name, dependency: imports } = FileHead::decode(encoded.clone())
            .map_err(|error| ReflectionError::Answer(format!("sent a file that is none: {error}")))?;
        if self.files.contains_key(&name) {
            return Ok(());
        }
        self.bytes += encoded.len();
        if self.files.len() >= FILES_MAX || self.bytes > BYTES_MAX {
            return Err(ReflectionError::Answer(format!(
                "has more than {FILES_MAX} files or {BYTES_MAX} bytes of descriptors: say --proto or --protoset"
            )));
        }
        self.files.insert(name, File { encoded, imports });
        Ok(())
    }

    /// A file that is imported and was not sent, and one that imports it.
    fn missing(&self) -> Option<(String, String)> {
        self.files.iter().find_map(|(by, file)| {
            let name = file.imports.iter().find(|import| !self.files.contains_key(*import))?;
            Some((name.clone(), by.clone()))
        })
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

    /// The answer to a question, by the newest version of the service that the server has.
    async fn ask(&mut self, question: MessageRequest) -> Result<MessageResponse, ReflectionError> {
        loop {
            match self.ask_version(question.clone()).await {
                Err(status) if status.code() == Code::Unimplemented => {
                    self.stream = None;
                    self.version += 1;
                    if self.version >= VERSIONS.len() {
                        self.version = 0;
                        return Err(ReflectionError::None);
                    }
                }
                answer => return Ok(answer?),
            }
        }
    }

    async fn ask_version(&mut self, question: MessageRequest) -> Result<MessageResponse, Status> {
        let request = ServerReflectionRequest { message_request: Some(question), ..Default::default() };
        let patience = self.patience;
        let answered = async {
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
                options.max_decoding_message_size = BYTES_MAX;
                let response = self.channel.bidi_streaming(&method, call, &options).await?;
                self.stream.insert(Conversation { questions, answers: response.into_inner() })
            };
            let answer = stream.answers.message().await?;
            let answer = answer.and_then(|answer| answer.message_response);
            answer.ok_or_else(|| Status::internal("the server ended the call without an answer"))
        };
        let answer = tokio::time::timeout(patience, answered).await;
        answer.unwrap_or_else(|_| Err(Status::deadline_exceeded(format!("no answer within {patience:?}"))))
    }
}

fn unexpected(what: &str, answer: &MessageResponse) -> ReflectionError {
    ReflectionError::Answer(match answer {
        MessageResponse::ErrorResponse(error) => {
            let code = Code::from_i32(error.error_code);
            format!("was asked for {what} and says {code:?}: {}", error.error_message)
        }
        _ => format!("was asked for {what} and sent something else"),
    })
}

/// What a call of the service sends.
struct Questions(mpsc::Receiver<ServerReflectionRequest>);

impl Stream for Questions {
    type Item = ServerReflectionRequest;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ServerReflectionRequest>> {
        self.0.poll_recv(cx)
    }
}
