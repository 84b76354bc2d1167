//! The methods that can be called, with what is known of each.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use thalweg_engine::server::{HandlerCost, LocalCalls, LocalUnary, ServerMethod};
use thalweg_engine::{Code, Encoding, EncodingSet, RequestHead, ServiceOptions, Status};
use thalweg_protobuf::{MessageId, Schema};

use crate::codec::{Codec, CodecOptions};
use crate::compression::Compression;

/// All methods by their paths.
#[derive(Debug)]
pub(crate) struct Methods(HashMap<Box<str>, Arc<Method>>);

/// A method.
pub(crate) struct Method {
    path: Box<str>,
    /// None of one that the server does not have.
    served: Option<Arc<ServerMethod>>,
    types: Option<Types>,
    /// How long its calls keep the processor that are not gRPC.
    cost: HandlerCost,
}

/// What its descriptor says.
#[derive(Debug)]
struct Types {
    schema: Schema,
    input: MessageId,
    output: MessageId,
    /// How its messages are read and written.
    options: CodecOptions,
    has_no_side_effects: bool,
    call_type: &'static str,
}

impl Methods {
    pub(crate) fn new(calls: &LocalCalls, schema: &Schema, options: &CodecOptions) -> Methods {
        let method = |served: Arc<ServerMethod>| {
            let path: Box<str> = format!("/{}", served.name()).into();
            let types = schema.method(&path).map(|method| Types {
                schema: schema.clone(),
                input: method.input().id(),
                output: method.output().id(),
                options: options.within(served.options()),
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

    /// The full names of the services, in the order of the alphabet.
    pub(crate) fn services(&self) -> Vec<&str> {
        let mut services: Vec<&str> = self.0.keys().filter_map(|path| path[1..].rsplit('/').nth(1)).collect();
        services.sort_unstable();
        services.dedup();
        services
    }

    /// The methods of a service by their own names, in the order of the alphabet, with what types of calls they take.
    pub(crate) fn of_service(&self, service: &str) -> Vec<(&str, &'static str)> {
        let of = |(path, method): (_, &Arc<Method>)| {
            let (its, name) = str::rsplit_once(path, '/')?;
            (its.strip_prefix('/') == Some(service)).then(|| (name, method.call_type()))
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
    /// One that the server does not have: calls of it end with the status that says so.
    pub(crate) fn unknown(path: &str) -> Method {
        Method { path: path.into(), served: None, types: None, cost: HandlerCost::default() }
    }

    /// `/package.Service/Method`.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// What was set for it.
    pub(crate) fn options(&self) -> &ServiceOptions {
        static OF_UNKNOWN: LazyLock<ServiceOptions> = LazyLock::new(ServiceOptions::default);
        self.served.as_ref().map_or(&OF_UNKNOWN, |served| served.options())
    }

    pub(crate) fn cost(&self) -> &HandlerCost {
        &self.cost
    }

    /// Calls it with one message, for one.
    pub(crate) fn call(&self, calls: &LocalCalls, head: &RequestHead, message: Bytes) -> LocalUnary {
        match &self.served {
            Some(served) => calls.call_method(served, head, message),
            None => calls.call_unary(&self.path, head, message),
        }
    }

    /// Whether requests, answers or both are a stream.
    pub(crate) fn is_streaming(&self) -> bool {
        self.served.as_ref().is_none_or(|served| served.is_streaming())
    }

    /// As its descriptor says; without one nobody knows which way a stream goes.
    fn call_type(&self) -> &'static str {
        let undescribed = if self.is_streaming() { "streaming" } else { "unary" };
        self.types.as_ref().map_or(undescribed, |types| types.call_type)
    }

    /// Whether it may be called by GET.
    pub(crate) fn has_no_side_effects(&self) -> bool {
        self.types.as_ref().is_some_and(|types| types.has_no_side_effects)
    }

    /// Whether its messages can be anything but wire bytes.
    pub(crate) fn is_described(&self) -> bool {
        self.types.is_some()
    }

    /// How its answers may be compressed.
    pub(crate) fn offers(&self) -> EncodingSet {
        self.options()
            .send_compressed
            .map_or(EncodingSet::IDENTITY, |encoding| EncodingSet::IDENTITY.with(encoding))
    }

    /// How an answer is that is compressed so.
    pub(crate) fn compression(&self, encoding: Encoding) -> Compression {
        Compression { encoding, threshold: self.options().compression_threshold }
    }

    /// The wire bytes of a request.
    ///
    /// # Errors
    /// See [`Codec::read`]; UNIMPLEMENTED, if its type is not known.
    pub(crate) fn read(&self, codec: Codec, message: Bytes) -> Result<Bytes, Status> {
        if codec == Codec::Proto {
            return Ok(message);
        }
        let types = self.types(codec)?;
        codec.read(types.schema.message_by_id(types.input), message, &types.options.parse)
    }

    /// What a client gets for the wire bytes of an answer.
    ///
    /// # Errors
    /// See [`Codec::write`]; UNIMPLEMENTED, if its type is not known.
    pub(crate) fn write(&self, codec: Codec, wire: Bytes) -> Result<Bytes, Status> {
        if codec == Codec::Proto {
            return Ok(wire);
        }
        let types = self.types(codec)?;
        codec.write(types.schema.message_by_id(types.output), wire, &types.options.print)
    }

    fn types(&self, codec: Codec) -> Result<&Types, Status> {
        self.types.as_ref().ok_or_else(|| self.undescribed(codec))
    }

    #[cold]
    fn undescribed(&self, codec: Codec) -> Status {
        let why = format!(
            "{} takes messages of the codec proto alone: {} needs the descriptors of its service, which the server \
             does not have; thalweg-build embeds them (embed_descriptors), and Web::descriptors takes those of others",
            self.path,
            codec.name()
        );
        Status::new(Code::Unimplemented, why)
    }
}
