//! What the two modules of a service have in common: options, attributes, call types.

use prost_build::{Comments, Method};

use crate::name::{ServiceNames, message_path, path_matches};

/// Which halves of a service are generated, and what is written above them.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub(crate) struct ServiceOptions {
    pub(crate) client: bool,
    pub(crate) server: bool,
    pub(crate) client_module_attributes: Attributes,
    pub(crate) client_attributes: Attributes,
    pub(crate) server_module_attributes: Attributes,
    pub(crate) server_attributes: Attributes,
    pub(crate) trait_attributes: Attributes,
    /// Paths of services and methods whose comments stay out of the code.
    pub(crate) disable_comments: Vec<String>,
    /// What is received is a view of buffa's, not the owned message.
    pub(crate) receive_views: bool,
    /// The type that is put around messages.
    pub(crate) codec: Option<String>,
    /// Services have their descriptors with them.
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
    /// The type of a message that is sent, whose path prost gave.
    pub(crate) fn sent(&self, path: &str) -> String {
        let path = message_path(path);
        match &self.codec {
            Some(codec) => format!("{codec}<{path}>"),
            None => path,
        }
    }

    /// The type of a message that is received.
    pub(crate) fn received(&self, path: &str) -> String {
        match &self.codec {
            None if self.receive_views => format!("thalweg::View<{}View<'static>>", message_path(path)),
            _ => self.sent(path),
        }
    }

    /// The comments above and beside a service or method, as documentation.
    ///
    /// Detached blocks stay behind: they are about the file, not the item.
    pub(crate) fn documentation(&self, comments: &Comments, full: &str) -> String {
        let mut text = String::new();
        if !self.disable_comments.iter().any(|pattern| path_matches(pattern, full)) {
            let attached = Comments { leading_detached: Vec::new(), ..comments.clone() };
            attached.append_with_indent(0, &mut text);
        }
        text
    }
}

/// Attributes, each with the path of the services that get it.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<(String, String)>);

impl Attributes {
    pub(crate) fn push(&mut self, path: impl Into<String>, attribute: impl Into<String>) {
        self.0.push((path.into(), attribute.into()));
    }

    /// The attributes of one service, a line each.
    pub(crate) fn of(&self, service: &ServiceNames) -> String {
        let package = service.full.rsplit_once('.').map_or("", |(package, _)| package);
        let means_it = |path: &str| path_matches(path, &service.full) || path_matches(path, package);
        let selected = self.0.iter().filter(|(path, _)| means_it(path));
        selected.map(|(_, attribute)| attribute.clone() + "\n").collect()
    }
}

/// How the peers' messages of a method come: the four call types.
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

    /// The function for this call type, on the channel as on the server's method table.
    pub(crate) fn function(self) -> &'static str {
        match self {
            CallType::Unary => "unary",
            CallType::ClientStreaming => "client_streaming",
            CallType::ServerStreaming => "server_streaming",
            CallType::BidiStreaming => "bidi_streaming",
        }
    }
}

/// Lints of the including crate say nothing about code that nobody wrote.
pub(crate) const MODULE_LINTS: &str = "#![allow(dead_code, deprecated, missing_docs, unreachable_pub, \
     unused_variables, clippy::all, clippy::pedantic)]\n";

/// `#[deprecated]` where the `.proto` file says so.
pub(crate) fn deprecation(is_deprecated: bool) -> &'static str {
    if is_deprecated { "#[deprecated]\n" } else { "" }
}
