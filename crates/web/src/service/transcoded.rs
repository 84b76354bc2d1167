//! JSON transcoding by `google.api.http` annotations: [`Transcoded`].
//!
//! See [`transcoding`](crate::transcoding) for the behavior seen by clients.

mod answers;
mod call;
mod failure;
mod form;
mod head;
mod metadata;
mod requests;
mod run;
mod target;

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Method, Request};
use http_body::Body as _;
use thalweg_engine::RequestHead;
use thalweg_engine::raw::RawHead;

use super::context::{Context, head_of};
use super::response::ResponseFuture;
use super::unary::Form;
use crate::body::Body;
use crate::transcoding::{self, RequestOptions, RoutePlace, Router, Rules};
use call::Call;
use form::TranscodedForm;
use target::{Routes, Target};

/// The routes of all services that have descriptors.
#[derive(Clone)]
pub(super) struct Transcoded(Arc<Routes>);

/// Result of routing a request.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// A binding.
    Route(Route),
    /// The path supports other HTTP methods only; `allow` lists them.
    MethodNotAllowed { allow: HeaderValue },
    /// No route.
    Nothing,
}

/// A binding, and the part of the path that it matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// Whether the route comes from an annotation and is not the method's own path.
    pub(super) is_annotated: bool,
    place: RoutePlace,
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

    pub(super) fn find(&self, method: &Method, path: &str) -> Found {
        let router = &self.0.router;
        let mut found = router.find(method, path);
        if *method == Method::HEAD && !matches!(found, transcoding::Found::Route(_)) {
            found = router.find(&Method::GET, path);
        }
        match found {
            transcoding::Found::Route(route) => {
                Found::Route(Route { is_annotated: route.binding().is_annotated(), place: route.place() })
            }
            transcoding::Found::MethodNotAllowed { allowed } => {
                Found::MethodNotAllowed { allow: allow(&allowed) }
            }
            transcoding::Found::NotFound => Found::Nothing,
        }
    }

    /// Returns the form of a unary call; `None` if it is streaming or refused.
    pub(super) fn form(&self, route: &Route, head: &RawHead<'_>) -> Option<Arc<dyn Form>> {
        if self.is_streaming(route) {
            return None;
        }
        // Whether there is a body is unknown here: a request refused because of its body is read again later.
        let (call, asked) = Call::read(&self.0, route.place, head, true).ok()?;
        Some(form(call, asked))
    }

    /// Handles a request for `route`.
    pub(super) fn call(&self, route: &Route, request: Request<Body>) -> ResponseFuture {
        let has_body = !request.body().is_end_stream();
        match Call::read(&self.0, route.place, &head_of(&request), has_body) {
            Err(failure) => ResponseFuture::ready(failure.answer(&self.0.context)),
            Ok((call, asked)) if self.is_streaming(route) => ResponseFuture::of(async move {
                let context = Arc::clone(&call.routes.context);
                let answered = call.answer(asked, request.into_body()).await;
                answered.unwrap_or_else(|failure| failure.answer(&context))
            }),
            Ok((call, asked)) => {
                let form = form(call, asked);
                ResponseFuture::unary(&form, request.into_body())
            }
        }
    }

    fn is_streaming(&self, route: &Route) -> bool {
        let binding = &self.0.router.rules().bindings()[route.place.index];
        binding.is_client_streaming() || binding.is_server_streaming()
    }
}

fn form(call: Call, asked: RequestHead) -> Arc<dyn Form> {
    Arc::new(TranscodedForm { call, asked })
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
