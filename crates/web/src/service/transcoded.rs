//! JSON transcoding by `google.api.http` annotations: [`Transcoded`].
//!
//! See [`transcoding`](crate::transcoding) for the behavior seen by clients.

mod call;
mod failure;
mod head;
mod metadata;
mod requests;
mod responses;
mod run;
mod target;
mod unary;

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Method, Request};
use http_body::Body as _;
use thalweg_engine::RequestHead;
use thalweg_engine::raw::RawHead;

use super::context::{Context, head_of};
use super::response::ResponseFuture;
use super::unary::UnaryAdapter;
use crate::body::Body;
use crate::transcoding::{self, RequestOptions, RouteKey, Router, Rules};
use call::TranscodedCall;
use target::{Routes, Target};
use unary::TranscodedUnary;

/// The routes of all services that have descriptors.
#[derive(Clone)]
pub(super) struct Transcoded(Arc<Routes>);

/// Result of routing a request.
#[derive(Clone, Debug)]
pub(super) enum Lookup {
    /// A binding.
    Route(Route),
    /// The path supports other HTTP methods only; `allow` lists them.
    MethodNotAllowed { allow: HeaderValue },
    /// No route.
    NotFound,
}

/// A binding, and the part of the path that it matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// Whether the route comes from an annotation and is not the method's own path.
    pub(super) is_annotated: bool,
    key: RouteKey,
}

impl Transcoded {
    pub(super) fn new(
        context: &Arc<Context>,
        rules: Rules,
        requests: &RequestOptions,
        allows_simple_posts: bool,
    ) -> Transcoded {
        let router = Router::new(rules);
        let rules = router.rules();
        let targets = rules.bindings().iter().map(|binding| Target::of(context, rules, binding, requests));
        let targets = targets.collect();
        let context = Arc::clone(context);
        Transcoded(Arc::new(Routes { context, router, targets, allows_simple_posts }))
    }

    pub(super) fn find(&self, method: &Method, path: &str) -> Lookup {
        let router = &self.0.router;
        let mut lookup = router.find(method, path);
        if *method == Method::HEAD && !matches!(lookup, transcoding::Lookup::Route(_)) {
            lookup = router.find(&Method::GET, path);
        }
        match lookup {
            transcoding::Lookup::Route(route) => {
                Lookup::Route(Route { is_annotated: route.binding().is_annotated(), key: route.key() })
            }
            transcoding::Lookup::MethodNotAllowed { allowed } => {
                Lookup::MethodNotAllowed { allow: allow(&allowed) }
            }
            transcoding::Lookup::NotFound => Lookup::NotFound,
        }
    }

    /// Returns the adapter of a unary call; `None` if it is streaming or refused.
    pub(super) fn adapter(&self, route: &Route, head: &RawHead<'_>) -> Option<Arc<dyn UnaryAdapter>> {
        if self.is_streaming(route) {
            return None;
        }
        // Whether there is a body is unknown here: a request refused because of its body is read again later.
        let (call, request_head) = TranscodedCall::read(&self.0, route.key, head, true).ok()?;
        Some(adapter(call, request_head))
    }

    /// Handles a request for `route`.
    pub(super) fn call(&self, route: &Route, request: Request<Body>) -> ResponseFuture {
        let has_body = !request.body().is_end_stream();
        match TranscodedCall::read(&self.0, route.key, &head_of(&request), has_body) {
            Err(failure) => ResponseFuture::ready(failure.response(&self.0.context)),
            Ok((call, request_head)) if self.is_streaming(route) => ResponseFuture::from_future(async move {
                let context = Arc::clone(&call.routes.context);
                let response = call.respond(request_head, request.into_body()).await;
                response.unwrap_or_else(|failure| failure.response(&context))
            }),
            Ok((call, request_head)) => {
                let adapter = adapter(call, request_head);
                ResponseFuture::unary(&adapter, request.into_body())
            }
        }
    }

    fn is_streaming(&self, route: &Route) -> bool {
        let binding = &self.0.router.rules().bindings()[route.key.index];
        binding.is_client_streaming() || binding.is_server_streaming()
    }
}

fn adapter(call: TranscodedCall, request_head: RequestHead) -> Arc<dyn UnaryAdapter> {
    Arc::new(TranscodedUnary { call, request_head })
}

impl fmt::Debug for Transcoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcoded").field("routes", &self.0.targets.len()).finish_non_exhaustive()
    }
}

/// Returns the value of `allow`. GET implies HEAD.
fn allow(methods: &[&Method]) -> HeaderValue {
    let mut names: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
    if names.contains(&"GET") && !names.contains(&"HEAD") {
        names.push("HEAD");
    }
    // Names of methods are tokens.
    HeaderValue::try_from(names.join(", ")).unwrap_or_else(|_| HeaderValue::from_static(""))
}
