//! The server's module of a service: the trait to implement, and the service made of it.

use prost_build::{Method, Service};

use crate::descriptors::DESCRIPTORS;
use crate::name::{ServiceNames, answer_stream};
use crate::service::{CallType, MODULE_LINTS, ServiceOptions};

/// `pub mod greeter_server { .. }`
pub(crate) fn module(service: &Service, names: &ServiceNames, options: &ServiceOptions) -> String {
    let ServiceNames { trait_name, server, server_module, full, .. } = names;
    let module_attributes = options.server_module_attributes.of(names);
    let server_attributes = options.server_attributes.of(names);
    let trait_attributes = options.trait_attributes.of(names);
    let service_documentation = options.documentation(&service.comments, full);
    let trait_items: String =
        service.methods.iter().map(|method| trait_method(method, full, options)).collect();
    let descriptors = if options.embeds_descriptors {
        format!("const FILE_DESCRIPTOR_SET: &'static [u8] = super::{DESCRIPTORS};\n")
    } else {
        String::new()
    };
    let registrations: String =
        service.methods.iter().map(|method| registration(method, trait_name)).collect();
    // The methods are called by their trait: `Arc` and `Clone` have methods too.
    format!(
        r#"
/// The server of `{full}`.
{module_attributes}pub mod {server_module} {{
    {MODULE_LINTS}

    /// The service's name on the wire.
    pub const SERVICE_NAME: &str = "{full}";

    {service_documentation}{trait_attributes}pub trait {trait_name}: Send + Sync + 'static {{
        {trait_items}
    }}

    /// Serves an implementation of [`{trait_name}`].
    {server_attributes}pub struct {server}<T> {{
        service: std::sync::Arc<T>,
        options: thalweg::ServiceOptions,
    }}

    impl<T> {server}<T> {{
        /// Serves `service`, with the default options.
        pub fn new(service: T) -> Self {{
            Self::from_arc(std::sync::Arc::new(service))
        }}

        /// Serves a service that others hold, too.
        pub fn from_arc(service: std::sync::Arc<T>) -> Self {{
            Self {{ service, options: thalweg::ServiceOptions::default() }}
        }}

        /// Serves `service`, with a function that sees each request's metadata and may refuse the call. What sees
        /// messages goes around the service: `thalweg::server::InterceptedService`.
        pub fn with_interceptor<F>(service: T, interceptor: F) -> thalweg::server::InterceptedService<Self>
        where
            F: Fn(thalweg::Request<()>) -> Result<thalweg::Request<()>, thalweg::Status> + Send + Sync + 'static,
        {{
            thalweg::server::InterceptedService::new(
                Self::new(service),
                thalweg::interceptor::head(interceptor),
            )
        }}

        /// Replaces the options of all methods.
        #[must_use]
        pub fn with_options(mut self, options: thalweg::ServiceOptions) -> Self {{
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

        /// Compresses messages with `encoding` for clients that take it.
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

        /// Takes messages that are compressed with these encodings; all that are known by default.
        #[must_use]
        pub fn accept_compressed(mut self, encodings: thalweg::EncodingSet) -> Self {{
            self.options.accept_compressed = encodings;
            self
        }}
    }}

    impl<T> Clone for {server}<T> {{
        fn clone(&self) -> Self {{
            Self {{ service: self.service.clone(), options: self.options.clone() }}
        }}
    }}

    impl<T: {trait_name}> thalweg::server::Service for {server}<T> {{
        const NAME: &'static str = SERVICE_NAME;
        {descriptors}
        fn register(self, methods: &mut thalweg::server::Methods<'_>) {{
            {registrations}
        }}
    }}
}}
"#
    )
}

/// `fn say_hello(&self, request: ..) -> impl Future<..> + Send;`, after the type of its stream if it
/// answers with one.
fn trait_method(method: &Method, service: &str, options: &ServiceOptions) -> String {
    let call_type = CallType::of(method);
    let input = options.received(&method.input_type);
    let output = options.sent(&method.output_type);
    let question = match call_type {
        CallType::Unary | CallType::ServerStreaming => input,
        CallType::ClientStreaming | CallType::BidiStreaming => format!("thalweg::Streaming<{input}>"),
    };
    let (stream, answer) = match call_type {
        CallType::Unary | CallType::ClientStreaming => (String::new(), output),
        CallType::ServerStreaming | CallType::BidiStreaming => {
            let name = answer_stream(&method.proto_name);
            let bounds =
                format!("thalweg::Stream<Item = Result<{output}, thalweg::Status>> + Send + 'static");
            let proto_name = &method.proto_name;
            (format!("/// The answers of `{proto_name}`.\ntype {name}: {bounds};\n"), format!("Self::{name}"))
        }
    };
    let documentation = options.documentation(&method.comments, &format!("{service}.{}", method.proto_name));
    let name = &method.name;
    format!(
        "
        {stream}
        {documentation}fn {name}(
            &self,
            request: thalweg::Request<{question}>,
        ) -> impl std::future::Future<Output = Result<thalweg::Response<{answer}>, thalweg::Status>> + Send;
        "
    )
}

/// `methods.unary("SayHello", ..);`
fn registration(method: &Method, trait_name: &str) -> String {
    let function = CallType::of(method).function();
    let Method { name, proto_name, .. } = method;
    format!(
        "methods.{function}(
            \"{proto_name}\",
            &self.service,
            &self.options,
            |service: std::sync::Arc<T>, request| async move {{
                <T as {trait_name}>::{name}(&service, request).await
            }},
        );\n"
    )
}
