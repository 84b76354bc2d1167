//! The client's module of a service.

use prost_build::{Method, Service};
use prost_types::method_options::IdempotencyLevel;

use crate::name::{ServiceNames, client_method, method_static};
use crate::service::{CallType, MODULE_LINTS, ServiceOptions, deprecation};

/// `pub mod greeter_client { .. }`
pub(crate) fn module(service: &Service, names: &ServiceNames, options: &ServiceOptions) -> String {
    let ServiceNames { client, client_module, full, .. } = names;
    let module_attributes = options.client_module_attributes.of(names);
    let client_attributes = options.client_attributes.of(names);
    let service_documentation = options.documentation(&service.comments, full);
    let service_deprecation = deprecation(service.options.deprecated());
    let statics: String =
        service.methods.iter().map(|method| method_descriptor(method, full, options)).collect();
    let methods: String = service.methods.iter().map(|method| call(method, full, options)).collect();
    format!(
        r"
/// The client of `{full}`.
{module_attributes}pub mod {client_module} {{
    {MODULE_LINTS}

    {statics}

    {service_documentation}{service_deprecation}{client_attributes}#[derive(Clone)]
    pub struct {client}<C = thalweg::Channel> {{
        channel: C,
        options: thalweg::CallOptions,
    }}

    impl {client} {{
        /// Connects to a gRPC target (`host:port`, `dns:///host:port`, `unix:path`), with the default options.
        pub async fn connect(target: impl Into<String>) -> Result<Self, thalweg::channel::ConnectError> {{
            Ok(Self::new(thalweg::Channel::builder(target).connect().await?))
        }}
    }}

    impl {client}<thalweg::InterceptedChannel> {{
        /// Calls the service on a channel, with a function that sees each request's metadata and may refuse the call.
        /// What sees messages goes around the channel: `Channel::with_interceptor`.
        pub fn with_interceptor<F>(channel: impl Into<thalweg::InterceptedChannel>, interceptor: F) -> Self
        where
            F: Fn(thalweg::Request<()>) -> Result<thalweg::Request<()>, thalweg::Status> + Send + Sync + 'static,
        {{
            Self::new(channel.into().with_interceptor(thalweg::interceptor::head(interceptor)))
        }}
    }}

    impl<C: thalweg::Caller> {client}<C> {{
        /// Calls the service on a channel, with the options that calls have there.
        pub fn new(channel: C) -> Self {{
            let options = channel.call_options();
            Self {{ channel, options }}
        }}

        /// Replaces the options of all calls.
        #[must_use]
        pub fn with_options(mut self, options: thalweg::CallOptions) -> Self {{
            self.options = options;
            self
        }}

        /// Takes messages of at most `limit` bytes.
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {{
            self.options.max_decoding_message_size = limit;
            self
        }}

        /// Sends messages of at most `limit` bytes.
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {{
            self.options.max_encoding_message_size = limit;
            self
        }}

        /// Compresses messages with `encoding`.
        #[must_use]
        pub fn send_compressed(mut self, encoding: thalweg::Encoding) -> Self {{
            self.options.send_compressed = Some(encoding);
            self
        }}

        /// Sends messages of fewer bytes than these as they are; 1 KiB by default.
        #[must_use]
        pub fn compression_threshold(mut self, bytes: usize) -> Self {{
            self.options.compression_threshold = bytes;
            self
        }}

        /// Lets the server compress with these encodings; all that are known by default.
        #[must_use]
        pub fn accept_compressed(mut self, encodings: thalweg::EncodingSet) -> Self {{
            self.options.accept_compressed = encodings;
            self
        }}

        /// Whether calls wait for a connection that cannot be made at the moment, rather than fail.
        #[must_use]
        pub fn wait_for_ready(mut self, wait: bool) -> Self {{
            self.options.wait_for_ready = wait;
            self
        }}

        /// The deadline of calls that set none of their own.
        #[must_use]
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {{
            self.options.timeout = Some(timeout);
            self
        }}

        {methods}
    }}
}}
"
    )
}

/// `pub static SAY_HELLO: thalweg::Method = ..;`
fn method_descriptor(method: &Method, service: &str, options: &ServiceOptions) -> String {
    let name = method_static(method);
    let path = format!("/{service}/{}", method.proto_name);
    let content_subtype = if options.codec.is_some() {
        let message = options.sent(&method.input_type);
        format!(".with_content_subtype(<{message} as thalweg::Message>::CONTENT_SUBTYPE)")
    } else {
        String::new()
    };
    let side_effects = match method.options.idempotency_level() {
        IdempotencyLevel::NoSideEffects => ".without_side_effects()",
        IdempotencyLevel::IdempotencyUnknown | IdempotencyLevel::Idempotent => "",
    };
    format!(
        "/// `{path}`
        pub static {name}: thalweg::Method = thalweg::Method::new(\"{path}\"){content_subtype}{side_effects};\n"
    )
}

/// `pub fn say_hello<R>(&self, request: R) -> impl Future<..> + Send { .. }`
///
/// It is no `async fn`: a caller's future is `Send` by the bound alone then, and rustc need not look into what the
/// request is made of. Looking, it fails for streams with a trait object or a closure in them ("higher-ranked lifetime
/// error"). Crates of older editions get the captures that the edition 2024 has by itself.
fn call(method: &Method, service: &str, options: &ServiceOptions) -> String {
    let call_type = CallType::of(method);
    let input = options.sent(&method.input_type);
    let output = options.received(&method.output_type);
    let (bound, conversion) = match call_type {
        CallType::Unary | CallType::ServerStreaming => {
            (format!("thalweg::IntoRequest<{input}>"), "into_request")
        }
        CallType::ClientStreaming | CallType::BidiStreaming => {
            (format!("thalweg::IntoStreamingRequest<Message = {input}>"), "into_streaming_request")
        }
    };
    let response = match call_type {
        CallType::Unary | CallType::ClientStreaming => output,
        CallType::ServerStreaming | CallType::BidiStreaming => format!("thalweg::Streaming<{output}>"),
    };
    let result = format!("Result<thalweg::Response<{response}>, thalweg::Status>");
    let documentation = options.documentation(&method.comments, &format!("{service}.{}", method.proto_name));
    let deprecation = deprecation(method.options.deprecated());
    let name = client_method(method);
    let descriptor = method_static(method);
    let function = call_type.function();
    format!(
        "
        {documentation}{deprecation}pub fn {name}<R>(
            &self,
            request: R,
        ) -> impl std::future::Future<Output = {result}> + Send + use<'_, C, R>
        where
            R: {bound},
        {{
            self.channel.{function}(&{descriptor}, request.{conversion}(), &self.options)
        }}
        "
    )
}
