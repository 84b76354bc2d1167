//! The callable methods and their properties.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use thalweg_engine::server::{HandlerCost, LocalCalls, LocalUnary, ServerMethod};
use thalweg_engine::{Code, Encoding, EncodingSet, RequestHead, ServiceOptions, Status};
use thalweg_protobuf::{MessageId, Schema};

use crate::codec::{Codec, CodecOptions};
use crate::compression::Compression;

/// All methods by path.
#[derive(Debug)]
pub(crate) struct Methods(HashMap<Box<str>, Arc<Method>>);

pub(crate) struct Method {
    path: Box<str>,
    /// `None` if the server does not have the method.
    served: Option<Arc<ServerMethod>>,
    types: Option<MethodTypes>,
    /// CPU time of its non-gRPC calls.
    cost: HandlerCost,
}

/// Data from its descriptor.
#[derive(Debug)]
struct MethodTypes {
    schema: Schema,
    input: MessageId,
    output: MessageId,
    options: CodecOptions,
    has_no_side_effects: bool,
    call_type: &'static str,
}

impl Methods {
    pub(crate) fn new(calls: &LocalCalls, schema: &Schema, options: &CodecOptions) -> Methods {
        let method = |served: Arc<ServerMethod>| {
            let path: Box<str> = format!("/{}", served.name()).into();
            let types = schema.method(&path).map(|method| MethodTypes {
                schema: schema.clone(),
                input: method.input().id(),
                output: method.output().id(),
                options: options.with_size_limits(served.options()),
                has_no_side_effects: method.has_no_side_effects(),
                call_type: call_type(method.is_client_streaming(), method.is_server_streaming()),
            });
            (
                path.clone(),
                Arc::new(Method { path, served: Some(served), types, cost: HandlerCost::default() }),
            )
        };
        Methods(calls.methods().into_iter().map(method).collect())
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Arc<Method>> {
        self.0.get(path)
    }

    /// Returns the full names of the services, sorted.
    pub(crate) fn services(&self) -> Vec<&str> {
        let mut services: Vec<&str> = self.0.keys().filter_map(|path| path[1..].rsplit('/').nth(1)).collect();
        services.sort_unstable();
        services.dedup();
        services
    }

    /// Returns the methods of a service by name, sorted, with their call types.
    pub(crate) fn methods_of(&self, service: &str) -> Vec<(&str, &'static str)> {
        let of = |(path, method): (_, &Arc<Method>)| {
            let (parent, name) = str::rsplit_once(path, '/')?;
            (parent.strip_prefix('/') == Some(service)).then(|| (name, method.call_type()))
        };
        let mut methods: Vec<_> = self.0.iter().filter_map(|(path, method)| of((path, method))).collect();
        methods.sort_unstable();
        methods
    }
}

fn call_type(is_client_streaming: bool, is_server_streaming: bool) -> &'static str {
    match (is_client_streaming, is_server_streaming) {
        (false, false) => "unary",
        (true, false) => "client streaming",
        (false, true) => "server streaming",
        (true, true) => "bidirectional streaming",
    }
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl Method {
    /// Returns a method that the server does not have: its calls fail with UNIMPLEMENTED.
    pub(crate) fn unknown(path: &str) -> Method {
        Method { path: path.into(), served: None, types: None, cost: HandlerCost::default() }
    }

    /// `/package.Service/Method`.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the options set for the method.
    pub(crate) fn options(&self) -> &ServiceOptions {
        static DEFAULTS: LazyLock<ServiceOptions> = LazyLock::new(ServiceOptions::default);
        self.served.as_ref().map_or(&DEFAULTS, |served| served.options())
    }

    pub(crate) fn cost(&self) -> &HandlerCost {
        &self.cost
    }

    /// Makes a unary call.
    pub(crate) fn call(&self, calls: &LocalCalls, head: &RequestHead, message: Bytes) -> LocalUnary {
        match &self.served {
            Some(served) => calls.call_method(served, head, message),
            None => calls.call_unary(&self.path, head, message),
        }
    }

    /// Returns whether the requests or the responses are a stream.
    pub(crate) fn is_streaming(&self) -> bool {
        self.served.as_ref().is_none_or(|served| served.is_streaming())
    }

    /// Returns the call type. Without a descriptor the direction of a stream is unknown.
    fn call_type(&self) -> &'static str {
        let undescribed = if self.is_streaming() { "streaming" } else { "unary" };
        self.types.as_ref().map_or(undescribed, |types| types.call_type)
    }

    /// Returns whether GET is allowed.
    pub(crate) fn has_no_side_effects(&self) -> bool {
        self.types.as_ref().is_some_and(|types| types.has_no_side_effects)
    }

    /// Returns whether it supports codecs other than Protobuf.
    pub(crate) fn is_described(&self) -> bool {
        self.types.is_some()
    }

    /// Returns the encodings offered for responses.
    pub(crate) fn offers(&self) -> EncodingSet {
        self.options()
            .send_compressed
            .map_or(EncodingSet::IDENTITY, |encoding| EncodingSet::IDENTITY.with(encoding))
    }

    /// Returns the compression of responses with this encoding.
    pub(crate) fn compression(&self, encoding: Encoding) -> Compression {
        Compression { encoding, threshold: self.options().compression_threshold }
    }

    /// Decodes a request to wire bytes.
    ///
    /// # Errors
    /// See [`Codec::read`]; UNIMPLEMENTED if its type is unknown.
    pub(crate) fn read(&self, codec: Codec, message: Bytes) -> Result<Bytes, Status> {
        if codec == Codec::Proto {
            return Ok(message);
        }
        let types = self.types(codec)?;
        codec.read(types.schema.message_by_id(types.input), message, &types.options.parse)
    }

    /// Encodes a response from wire bytes.
    ///
    /// # Errors
    /// See [`Codec::write`]; UNIMPLEMENTED if its type is unknown.
    pub(crate) fn write(&self, codec: Codec, wire: Bytes) -> Result<Bytes, Status> {
        if codec == Codec::Proto {
            return Ok(wire);
        }
        let types = self.types(codec)?;
        codec.write(types.schema.message_by_id(types.output), wire, &types.options.print)
    }

    fn types(&self, codec: Codec) -> Result<&MethodTypes, Status> {
        self.types.as_ref().ok_or_else(|| self.undescribed(codec))
    }

    #[cold]
    fn undescribed(&self, codec: Codec) -> Status {
        let why = format!(
            "{} accepts only the codec proto: {} needs the descriptors of its service, which the server lacks; embed \
             them with thalweg-build (embed_descriptors), or add them with Web::descriptors",
            self.path,
            codec.name()
        );
        Status::new(Code::Unimplemented, why)
    }
}
