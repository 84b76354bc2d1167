//! `thalweg.lab.v1.EchoOwn`: each response is the request, of a type known only at run time.
//!
//! [`thalweg_protobuf::Message`] replaces generated code: the request is decoded to an object, and the response encoded
//! from it.

use std::sync::Arc;

use thalweg::server::{Methods, Service};
use thalweg::{Encoding, Raw, Request, Response, ServiceOptions, Status};
use thalweg_protobuf::{Message, Schema};

use super::echo::{handler_timestamps, set_timestamps};

/// Proto file that declares the service.
const FILE: &str = "thalweg/lab/v1/echo_own.proto";
const ANNOTATIONS: [(&str, &str); 2] = [
    ("google/api/annotations.proto", include_str!("../../proto/google/api/annotations.proto")),
    ("google/api/http.proto", include_str!("../../proto/google/api/http.proto")),
];

/// Server of the gRPC and JSON API comparison, for user-provided messages.
#[derive(Clone, Debug)]
pub struct EchoOwnServer {
    /// An empty message of the type.
    like: Arc<Message>,
    options: ServiceOptions,
}

impl EchoOwnServer {
    /// Creates a server for messages of this type; `None` if the descriptors do not contain it.
    pub fn new(set: &[u8], type_name: &str) -> Option<Self> {
        let schema = Schema::from_descriptor_set(set).ok()?;
        let like = Arc::new(Message::new(schema.message(type_name)?));
        Some(Self { like, options: ServiceOptions::default() })
    }

    /// Returns the proto files of the service, for messages of a type declared in `file`.
    pub fn sources(file: &str, type_name: &str) -> Vec<(&'static str, String)> {
        let text = format!(
            "syntax = 'proto3';\n\
             package thalweg.lab.v1;\n\
             import 'google/api/annotations.proto';\n\
             import '{file}';\n\
             // Each response is the request, decoded and encoded again.\n\
             service EchoOwn {{\n\
             \x20 rpc Echo(.{type_name}) returns (.{type_name}) {{\n\
             \x20   option (google.api.http) = {{ post: '/v1/echo-own' body: '*' }};\n\
             \x20 }}\n\
             }}\n"
        );
        let annotations = ANNOTATIONS.map(|(name, text)| (name, text.to_owned()));
        [(FILE, text)].into_iter().chain(annotations).collect()
    }

    /// Accepts messages of at most `limit` bytes.
    #[must_use]
    pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
        self.options.max_decoding_message_size = limit;
        self
    }

    /// Compresses messages for clients that accept it.
    #[must_use]
    pub fn send_compressed(mut self, encoding: Encoding) -> Self {
        self.options.send_compressed = Some(encoding);
        self
    }
}

impl Service for EchoOwnServer {
    const NAME: &'static str = "thalweg.lab.v1.EchoOwn";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Echo", &self.like, &self.options, |like: Arc<Message>, request| async move {
            echo(&like, request)
        });
    }
}

fn echo(like: &Message, request: Request<Raw>) -> Result<Response<Raw>, Status> {
    let (metadata, _, Raw(wire)) = request.into_parts();
    let message = Message::decode(like.message_type(), wire);
    let message = message.map_err(|error| Status::invalid_argument(error.to_string()))?;
    let times = handler_timestamps(&metadata);
    let mut response = Response::new(Raw(message.as_ref().encode_to_vec().into()));
    set_timestamps(&mut response, times);
    Ok(response)
}
