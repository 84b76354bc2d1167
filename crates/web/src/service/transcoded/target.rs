//! What the bindings lead to: [`Routes`], [`Target`].

use std::sync::Arc;

use thalweg_engine::ServiceOptions;
use thalweg_engine::server::HandlerCost;
use thalweg_protobuf::json::PrintOptions;

use crate::codec::CodecOptions;
use crate::service::context::Context;
use crate::service::methods::Method;
use crate::transcoding::{self, Binding, RequestOptions, Router, Rules, request, response};

/// What is the same for all requests.
pub(super) struct Routes {
    pub(super) context: Arc<Context>,
    pub(super) router: Router,
    /// In the order of the bindings.
    pub(super) targets: Vec<Target>,
    /// Whether POST may come with a content type that forms can send, or with none.
    pub(super) allows_simple_posts: bool,
}

/// What a binding leads to.
pub(super) struct Target {
    /// None of a method that the server does not have.
    pub(super) method: Option<Arc<Method>>,
    /// How long its calls keep the processor.
    pub(super) cost: HandlerCost,
    /// Those of the method.
    pub(super) options: ServiceOptions,
    pub(super) takes: Takes,
    pub(super) is_raw_answer: bool,
    /// How requests are read.
    pub(super) requests: RequestOptions,
    /// How answers are printed; those of streams each in one line.
    pub(super) print: PrintOptions,
}

/// What the body of a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// There is none: the request is all in its path and its query.
    Nothing,
    Json,
    /// Whatever it is, into a `google.api.HttpBody`.
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
