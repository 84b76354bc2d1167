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
    pub(super) takes: Takes,
    pub(super) is_raw_answer: bool,
    /// Options for reading requests.
    pub(super) requests: RequestOptions,
    /// Options for printing responses; streams print each in one line.
    pub(super) print: PrintOptions,
}

/// Format of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// No body: path and query have the whole request.
    Nothing,
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
        let takes = match binding.body() {
            transcoding::Body::Absent => Takes::Nothing,
            _ if request::is_raw(rules, binding) => Takes::Raw,
            _ => Takes::Json,
        };
        let CodecOptions { parse, mut print } = context.options.within(&options);
        print.pretty &= !binding.is_server_streaming();
        Target {
            method: method.cloned(),
            cost: HandlerCost::default(),
            options,
            takes,
            is_raw_answer: response::is_raw(rules, binding),
            requests: RequestOptions { parse, ..requests.clone() },
            print,
        }
    }
}
