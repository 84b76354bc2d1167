//! The client's module of a service.

use proc_macro2::TokenStream;
use prost_build::{Method, Service};
use prost_types::method_options::IdempotencyLevel;
use quote::{format_ident, quote};

use crate::name::{ServiceNames, client_method, method_static};
use crate::service::{CallType, ServiceOptions, deprecation, message_setters, module_lints};

/// `pub mod greeter_client { .. }`
pub(crate) fn module(service: &Service, names: &ServiceNames, options: &ServiceOptions) -> TokenStream {
    let full = &names.full;
    let (module, client) = (format_ident!("{}", names.client_module), format_ident!("{}", names.client));
    let module_documentation = format!(" The client of `{full}`.");
    let module_attributes = options.client_module_attributes.of(names);
    let module_lints = module_lints();
    let client_attributes = options.client_attributes.of(names);
    let documentation = options.documentation(&service.comments, full);
    let deprecation = deprecation(service.options.deprecated());
    let statics = service.methods.iter().map(|method| method_descriptor(method, full, options));
    let interceptor_documentation = [
        " Calls the service on a channel. `interceptor` sees each request's metadata and may reject the call.",
        " To intercept messages, use `Channel::with_interceptor`.",
    ];
    let message_setters = message_setters(
        " Compresses messages with `encoding`.",
        " Accepts responses compressed with these encodings; by default all supported ones.",
    );
    let methods = service.methods.iter().map(|method| call(method, full, options));
    quote! {
        #[doc = #module_documentation]
        #module_attributes
        pub mod #module {
            #module_lints

            #(#statics)*

            #documentation
            #deprecation
            #client_attributes
            #[derive(Clone)]
            pub struct #client<C = thalweg::Channel> {
                channel: C,
                options: thalweg::CallOptions,
            }

            impl #client {
                /// Connects to a gRPC target (`host:port`, `dns:///host:port`, `unix:path`), with the default options.
                pub async fn connect(target: impl Into<String>) -> Result<Self, thalweg::channel::ConnectError> {
                    Ok(Self::new(thalweg::Channel::builder(target).connect().await?))
                }
            }

            impl #client<thalweg::InterceptedChannel> {
                #(#[doc = #interceptor_documentation])*
                pub fn with_interceptor<F>(channel: impl Into<thalweg::InterceptedChannel>, interceptor: F) -> Self
                where
                    F: Fn(thalweg::Request<()>) -> Result<thalweg::Request<()>, thalweg::Status>
                        + Send + Sync + 'static,
                {
                    Self::new(channel.into().with_interceptor(thalweg::interceptor::head(interceptor)))
                }
            }

            impl<C: thalweg::Caller> #client<C> {
                /// Calls the service on a channel, with the options that calls have there.
                pub fn new(channel: C) -> Self {
                    let options = channel.call_options();
                    Self { channel, options }
                }

                /// Replaces the options of all calls.
                #[must_use]
                pub fn with_options(mut self, options: thalweg::CallOptions) -> Self {
                    self.options = options;
                    self
                }

                #message_setters

                /// Whether calls wait while the server is unreachable, instead of failing.
                #[must_use]
                pub fn wait_for_ready(mut self, wait: bool) -> Self {
                    self.options.wait_for_ready = Some(wait);
                    self
                }

                /// The deadline of calls that set none of their own.
                #[must_use]
                pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
                    self.options.timeout = Some(timeout);
                    self
                }

                #(#methods)*
            }
        }
    }
}

/// `pub static SAY_HELLO: thalweg::Method = ..;`
fn method_descriptor(method: &Method, service: &str, options: &ServiceOptions) -> TokenStream {
    let name = format_ident!("{}", method_static(method));
    let path = format!("/{service}/{}", method.proto_name);
    let documentation = format!(" `{path}`");
    let content_subtype = options.codec.is_some().then(|| {
        let message = options.sent_type(&method.input_type);
        quote!(.with_content_subtype(<#message as thalweg::Message>::CONTENT_SUBTYPE))
    });
    let side_effects = match method.options.idempotency_level() {
        IdempotencyLevel::NoSideEffects => Some(quote!(.without_side_effects())),
        IdempotencyLevel::IdempotencyUnknown | IdempotencyLevel::Idempotent => None,
    };
    quote! {
        #[doc = #documentation]
        pub static #name: thalweg::Method = thalweg::Method::new(#path)#content_subtype #side_effects;
    }
}

/// Returns `pub fn say_hello<R>(&self, request: R) -> impl Future<..> + Send { .. }`.
///
/// It is not an `async fn`: the bound alone makes a caller's future `Send`, so rustc does not inspect the request type.
/// That inspection fails for streams with a trait object or a closure ("higher-ranked lifetime error"). Crates of older
/// editions get the captures of edition 2024.
fn call(method: &Method, service: &str, options: &ServiceOptions) -> TokenStream {
    let call_type = CallType::of(method);
    let input = options.sent_type(&method.input_type);
    let output = options.received_type(&method.output_type);
    let (bound, conversion) = match call_type {
        CallType::Unary | CallType::ServerStreaming => {
            (quote!(thalweg::IntoRequest<#input>), quote!(into_request))
        }
        CallType::ClientStreaming | CallType::BidiStreaming => {
            (quote!(thalweg::IntoStreamingRequest<Message = #input>), quote!(into_streaming_request))
        }
    };
    let response = match call_type {
        CallType::Unary | CallType::ClientStreaming => output,
        CallType::ServerStreaming | CallType::BidiStreaming => quote!(thalweg::Streaming<#output>),
    };
    let documentation = options.documentation(&method.comments, &format!("{service}.{}", method.proto_name));
    let deprecation = deprecation(method.options.deprecated());
    let name = format_ident!("{}", client_method(method));
    let descriptor = format_ident!("{}", method_static(method));
    let function = call_type.function();
    quote! {
        #documentation
        #deprecation
        pub fn #name<R>(
            &self,
            request: R,
        ) -> impl std::future::Future<Output = Result<thalweg::Response<#response>, thalweg::Status>>
            + Send
            + use<'_, C, R>
        where
            R: #bound,
        {
            self.channel.#function(&#descriptor, request.#conversion(), &self.options)
        }
    }
}
