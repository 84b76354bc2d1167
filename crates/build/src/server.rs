//! The server module of a service: the trait to implement, and its server.

use proc_macro2::TokenStream;
use prost_build::{Method, Service};
use quote::{format_ident, quote};

use crate::descriptors::DESCRIPTORS;
use crate::name::{ServiceNames, response_stream};
use crate::service::{CallType, ServiceOptions, message_setters, module_lints};

/// `pub mod greeter_server { .. }`
pub(crate) fn module(service: &Service, names: &ServiceNames, options: &ServiceOptions) -> TokenStream {
    let full = &names.full;
    let (module, server) = (format_ident!("{}", names.server_module), format_ident!("{}", names.server));
    let trait_name = format_ident!("{}", names.trait_name);
    let module_documentation = format!(" The server of `{full}`.");
    let module_attributes = options.server_module_attributes.of(names);
    let module_lints = module_lints();
    let server_documentation = format!(" Serves an implementation of [`{trait_name}`].");
    let server_attributes = options.server_attributes.of(names);
    let trait_attributes = options.trait_attributes.of(names);
    let trait_documentation = options.documentation(&service.comments, full);
    let trait_items = service.methods.iter().map(|method| trait_method(method, full, options));
    let interceptor_documentation = [
        " Serves `service`. `interceptor` sees each request's metadata and may reject the call.",
        " To intercept messages, use `thalweg::server::InterceptedService`.",
    ];
    let message_setters = message_setters(
        " Compresses messages with `encoding` for clients that accept it.",
        " Accepts messages compressed with these encodings; by default all supported ones.",
    );
    let descriptors = options.embeds_descriptors.then(|| {
        let descriptors = format_ident!("{DESCRIPTORS}");
        quote!(const #descriptors: &'static [u8] = super::#descriptors;)
    });
    // Methods are called through the trait, since `Arc` and `Clone` have methods too.
    let registrations = service.methods.iter().map(|method| {
        let function = CallType::of(method).function();
        let (name, proto_name) = (format_ident!("{}", method.name), &method.proto_name);
        quote! {
            methods.#function(
                #proto_name,
                &self.service,
                &self.options,
                |service: std::sync::Arc<T>, request| async move {
                    <T as #trait_name>::#name(&service, request).await
                },
            );
        }
    });
    quote! {
        #[doc = #module_documentation]
        #module_attributes
        pub mod #module {
            #module_lints

            /// The service's name on the wire.
            pub const SERVICE_NAME: &str = #full;

            #trait_documentation
            #trait_attributes
            pub trait #trait_name: Send + Sync + 'static {
                #(#trait_items)*
            }

            #[doc = #server_documentation]
            #server_attributes
            pub struct #server<T> {
                service: std::sync::Arc<T>,
                options: thalweg::ServiceOptions,
            }

            impl<T> #server<T> {
                /// Serves `service`, with the default options.
                pub fn new(service: T) -> Self {
                    Self::from_arc(std::sync::Arc::new(service))
                }

                /// Serves a service that others hold, too.
                pub fn from_arc(service: std::sync::Arc<T>) -> Self {
                    Self { service, options: thalweg::ServiceOptions::default() }
                }

                #(#[doc = #interceptor_documentation])*
                pub fn with_interceptor<F>(service: T, interceptor: F) -> thalweg::server::InterceptedService<Self>
                where
                    F: Fn(thalweg::Request<()>) -> Result<thalweg::Request<()>, thalweg::Status>
                        + Send + Sync + 'static,
                {
                    thalweg::server::InterceptedService::new(
                        Self::new(service),
                        thalweg::interceptor::head(interceptor),
                    )
                }

                /// Replaces the options of all methods.
                #[must_use]
                pub fn with_options(mut self, options: thalweg::ServiceOptions) -> Self {
                    self.options = options;
                    self
                }

                #message_setters
            }

            impl<T> Clone for #server<T> {
                fn clone(&self) -> Self {
                    Self { service: self.service.clone(), options: self.options.clone() }
                }
            }

            impl<T: #trait_name> thalweg::server::Service for #server<T> {
                const NAME: &'static str = SERVICE_NAME;
                #descriptors
                fn register(self, methods: &mut thalweg::server::Methods<'_>) {
                    #(#registrations)*
                }
            }
        }
    }
}

/// Returns `fn say_hello(&self, request: ..) -> impl Future<..> + Send;`, after the type of its response stream if it
/// has one.
fn trait_method(method: &Method, service: &str, options: &ServiceOptions) -> TokenStream {
    let call_type = CallType::of(method);
    let input = options.received_type(&method.input_type);
    let output = options.sent_type(&method.output_type);
    let question = match call_type {
        CallType::Unary | CallType::ServerStreaming => input,
        CallType::ClientStreaming | CallType::BidiStreaming => quote!(thalweg::Streaming<#input>),
    };
    let (stream, response) = match call_type {
        CallType::Unary | CallType::ClientStreaming => (None, output),
        CallType::ServerStreaming | CallType::BidiStreaming => {
            let documentation = format!(" Response stream of `{}`.", method.proto_name);
            let name = format_ident!("{}", response_stream(&method.proto_name));
            let stream = quote! {
                #[doc = #documentation]
                type #name: thalweg::Stream<Item = Result<#output, thalweg::Status>> + Send + 'static;
            };
            (Some(stream), quote!(Self::#name))
        }
    };
    let documentation = options.documentation(&method.comments, &format!("{service}.{}", method.proto_name));
    let name = format_ident!("{}", method.name);
    quote! {
        #stream
        #documentation
        fn #name(
            &self,
            request: thalweg::Request<#question>,
        ) -> impl std::future::Future<Output = Result<thalweg::Response<#response>, thalweg::Status>> + Send;
    }
}
