//! Targets of bindings: [`Routes`], [`Target`].

use std::sync::Arc;

use thalweg_engine::ServiceOptions;
use thalweg_engine::server::HandlerCost;
use thalweg_protobuf::json::PrintOptions;

use crate::codec::CodecOptions;
use crate::service::context::Context;
use crate::service::methods::Method;
use crate::transcoding::{self, Binding, RequestOptions, Router, Rules, request, response};

/// State shared by all requests.
pub(super) struct Routes {
    pub(super) context: Arc<Context>,
    pub(super) router: Router,
    /// In the order of the bindings.
    pub(super) targets: Vec<Target>,
    /// Whether POST requests may have a content type that forms can send, or none.
    pub(super) allows_simple_posts: bool,
}

/// Target of a binding.
pub(super) struct Target {
    /// `None` if the server does not have the method.
    pub(super) method: Option<Arc<Method>>,
    /// CPU time of its calls.
    pub(super) cost: HandlerCost,
    /// The method's options.
    pub(super) options: ServiceOptions,
    pub(super) body_format: BodyFormat,
    pub(super) is_raw_response: bool,
    /// Options for reading requests.
    pub(super) requests: RequestOptions,
    /// Options for printing responses; streams print each in one line.
    pub(super) print: PrintOptions,
}

/// Format of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFormat {
    /// No body: path and query have the whole request.
    Empty,
    Json,
    /// Any data, as a `google.api.HttpBody`.
    Raw,
}

impl Target {
    pub(super) fn of(
        context: &Context,
        rules: &Rules,
        binding: &Binding,
        requests: &RequestOptions,
    ) -> Target {
        let method = context.methods.get(binding.path());
        let options = method.map(|method| method.options().clone()).unwrap_or_default();
        let body_format = match binding.body() {
            transcoding::BodyMapping::Absent => BodyFormat::Empty,
            _ if request::is_raw(rules, binding) => BodyFormat::Raw,
            _ => BodyFormat::Json,
        };
        let CodecOptions { parse, mut print } = context.options.with_size_limits(&options);
        print.pretty &= !binding.is_server_streaming();
        Target {
            method: method.cloned(),
            cost: HandlerCost::default(),
            options,
            body_format,
            is_raw_response: response::is_raw(rules, binding),
            requests: requests.clone().parse(parse),
            print,
        }
    }
}
