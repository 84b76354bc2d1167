//! Common parts of the client and server modules: options, attributes, call types.

use proc_macro2::{Ident, TokenStream};
use prost_build::{Comments, Method};
use quote::{format_ident, quote};

use crate::name::{ServiceNames, message_path, path_matches};

/// Generated parts of a service, and their attributes.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub(crate) struct ServiceOptions {
    pub(crate) client: bool,
    pub(crate) server: bool,
    pub(crate) client_module_attributes: Attributes,
    pub(crate) client_attributes: Attributes,
    pub(crate) server_module_attributes: Attributes,
    pub(crate) server_attributes: Attributes,
    pub(crate) trait_attributes: Attributes,
    /// Paths of services and methods whose comments are omitted.
    pub(crate) disable_comments: Vec<String>,
    /// Whether received messages are buffa views instead of owned messages.
    pub(crate) receive_views: bool,
    /// The type that wraps messages.
    pub(crate) codec: Option<String>,
    /// Whether services embed their descriptors.
    pub(crate) embeds_descriptors: bool,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions {
            client: true,
            server: true,
            client_module_attributes: Attributes::default(),
            client_attributes: Attributes::default(),
            server_module_attributes: Attributes::default(),
            server_attributes: Attributes::default(),
            trait_attributes: Attributes::default(),
            disable_comments: Vec::new(),
            receive_views: false,
            codec: None,
            embeds_descriptors: false,
        }
    }
}

impl ServiceOptions {
    /// Returns the type of a sent message, from prost's path.
    pub(crate) fn sent_type(&self, path: &str) -> TokenStream {
        let message = tokens(&message_path(path));
        match self.codec.as_deref().map(tokens) {
            Some(codec) => quote!(#codec<#message>),
            None => message,
        }
    }

    /// Returns the type of a received message.
    pub(crate) fn received_type(&self, path: &str) -> TokenStream {
        if self.receive_views && self.codec.is_none() {
            let view = tokens(&format!("{}View", message_path(path)));
            return quote!(thalweg::View<#view<'static>>);
        }
        self.sent_type(path)
    }

    /// Returns the leading and trailing comments of a service or method as documentation.
    ///
    /// Detached blocks are omitted: they belong to the file, not the item.
    pub(crate) fn documentation(&self, comments: &Comments, full: &str) -> TokenStream {
        let mut text = String::new();
        if !self.disable_comments.iter().any(|pattern| path_matches(pattern, full)) {
            let attached = Comments { leading_detached: Vec::new(), ..comments.clone() };
            attached.append_with_indent(0, &mut text);
        }
        tokens(&text)
    }
}

/// Attributes with the paths of their services.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<(String, String)>);

impl Attributes {
    pub(crate) fn push(&mut self, path: impl Into<String>, attribute: impl Into<String>) {
        self.0.push((path.into(), attribute.into()));
    }

    /// Returns the attributes of one service.
    pub(crate) fn of(&self, service: &ServiceNames) -> TokenStream {
        let package = service.full.rsplit_once('.').map_or("", |(package, _)| package);
        let matches = |path: &str| path_matches(path, &service.full) || path_matches(path, package);
        let selected = self.0.iter().filter(|(path, _)| matches(path));
        selected.map(|(_, attribute)| tokens(attribute)).collect()
    }
}

/// The four call types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallType {
    Unary,
    ClientStreaming,
    ServerStreaming,
    BidiStreaming,
}

impl CallType {
    pub(crate) fn of(method: &Method) -> Self {
        match (method.client_streaming, method.server_streaming) {
            (false, false) => CallType::Unary,
            (true, false) => CallType::ClientStreaming,
            (false, true) => CallType::ServerStreaming,
            (true, true) => CallType::BidiStreaming,
        }
    }

    /// Returns the function for this call type, which has the same name on the channel and the server's method table.
    pub(crate) fn function(self) -> Ident {
        let name = match self {
            CallType::Unary => "unary",
            CallType::ClientStreaming => "client_streaming",
            CallType::ServerStreaming => "server_streaming",
            CallType::BidiStreaming => "bidi_streaming",
        };
        format_ident!("{name}")
    }
}

/// Parses Rust text: a path of prost's, or an attribute or path of the user.
///
/// # Panics
/// If it is not valid Rust, as prost-build does for its attributes.
pub(crate) fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| panic!("invalid Rust code `{text}`: {error}"))
}

/// Disables the including crate's lints for generated code.
pub(crate) fn module_lints() -> TokenStream {
    quote! {
        #![allow(
            dead_code, deprecated, missing_docs, unreachable_pub, unused_variables, clippy::all, clippy::pedantic
        )]
    }
}

/// Returns `#[deprecated]` if the `.proto` file has that option.
pub(crate) fn deprecation(is_deprecated: bool) -> Option<TokenStream> {
    is_deprecated.then(|| quote!(#[deprecated]))
}

/// Returns the setters common to clients and servers. The docs of the compression setters differ.
pub(crate) fn message_setters(compresses: &str, accepts: &str) -> TokenStream {
    quote! {
        /// Takes messages of at most `limit` bytes.
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.options.max_decoding_message_size = limit;
            self
        }

        /// Sends messages of at most `limit` bytes.
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.options.max_encoding_message_size = limit;
            self
        }

        #[doc = #compresses]
        #[must_use]
        pub fn send_compressed(mut self, encoding: thalweg::Encoding) -> Self {
            self.options.send_compressed = Some(encoding);
            self
        }

        /// Sends messages of fewer bytes than these as they are; 1 KiB by default.
        #[must_use]
        pub fn compression_threshold(mut self, bytes: usize) -> Self {
            self.options.compression_threshold = bytes;
            self
        }

        #[doc = #accepts]
        #[must_use]
        pub fn accept_compressed(mut self, encodings: thalweg::EncodingSet) -> Self {
            self.options.accept_compressed = encodings;
            self
        }
    }
}
