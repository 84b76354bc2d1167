//! Shared state for calling methods: [`Context`].

use std::fmt;
use std::sync::Arc;

use http::Request;
use thalweg_engine::ConnectionInfo;
use thalweg_engine::raw::RawHead;
use thalweg_engine::server::LocalCalls;
use thalweg_protobuf::{Schema, json};

use super::methods::Methods;
use crate::codec::CodecOptions;
use crate::connect::{DetailJson, ToJson};
use crate::transcoding::{Rules, RulesError};

/// The methods, and the conversion of their messages.
pub(crate) struct Context {
    pub(crate) calls: LocalCalls,
    pub(crate) methods: Methods,
    pub(crate) schema: Schema,
    pub(crate) options: CodecOptions,
    /// Converts error details to readable JSON.
    detail_json: Box<ToJson>,
}

impl Context {
    pub(crate) fn new(calls: LocalCalls, schema: Schema, options: CodecOptions) -> Context {
        let methods = Methods::new(&calls, &schema, &options);
        let (known, print) = (schema.clone(), options.print.clone().pretty(false));
        let detail_json = Box::new(move |name: &str, value: &[u8]| {
            let mut json = Vec::new();
            json::print(known.message(name)?, value, &print, &mut json).ok()?;
            serde_json::from_slice(&json).ok()
        });
        Context { calls, methods, schema, options, detail_json }
    }

    /// Returns the annotations of all services that have descriptors.
    ///
    /// # Errors
    /// See [`RulesError`].
    pub(crate) fn rules(&self) -> Result<Rules, RulesError> {
        let (described, others): (Vec<&str>, Vec<&str>) =
            self.methods.services().into_iter().partition(|service| self.schema.service(service).is_some());
        others.into_iter().for_each(warn_undescribed);
        Rules::new(&self.schema, described)
    }

    pub(crate) fn detail_json(&self) -> DetailJson<'_> {
        DetailJson(Some(&*self.detail_json))
    }
}

/// Warns about a service without descriptors, whose annotated paths are 404.
#[cold]
fn warn_undescribed(service: &str) {
    tracing::warn!(
        service,
        "no JSON and no pages for this service: the server lacks its descriptors; embed them with thalweg-build \
         (embed_descriptors), or add them with Web::descriptors"
    );
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("methods", &self.methods).finish_non_exhaustive()
    }
}

/// Returns the head of a request, with the connection from its extensions.
pub(crate) fn head_of<B>(request: &Request<B>) -> RawHead<'_> {
    RawHead {
        method: request.method(),
        uri: request.uri(),
        version: request.version(),
        headers: request.headers(),
        connection: request.extensions().get(),
    }
}

/// Returns the connection of a request, if known.
pub(crate) fn connection_of<B>(request: &Request<B>) -> Option<Arc<ConnectionInfo>> {
    request.extensions().get::<Arc<ConnectionInfo>>().cloned()
}
