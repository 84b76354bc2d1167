//! Statuses of failures detected on this side of a call, and what the transport adds to them.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::HeaderMap;

use super::value::{Status, StatusParts};
use crate::Code;
use crate::metadata::MetadataMap;

// For the transport, so not part of the documentation. tonic's type has no such functions.
impl Status {
    /// Creates a status for a failure detected on this side of a call, not reported by the peer. A client adds the call
    /// and its phase to the message.
    #[doc(hidden)]
    #[cold]
    pub fn local(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(StatusParts {
            code,
            message: message.into(),
            details: Bytes::new(),
            metadata: MetadataMap::new(),
            source: None,
            is_local: true,
            headers: None,
        }))
    }

    /// Returns whether it was made on this side and has no call context yet.
    #[doc(hidden)]
    pub fn is_local(&self) -> bool {
        self.0.is_local
    }

    /// Appends the call's context to the message, if the status was made on this side and has none yet.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn with_call_context(mut self, call: impl fmt::Display) -> Self {
        if std::mem::take(&mut self.0.is_local) {
            self.0.message = format!("{} [{call}]", self.message()).into();
        }
        self
    }

    /// Appends `more` to the message.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn with_detail(mut self, more: Option<impl fmt::Display>) -> Self {
        if let Some(more) = more {
            self.0.message = format!("{}; {more}", self.message()).into();
        }
        self
    }

    /// Prepends the metadata of the response headers: a failure has one place for headers and trailers.
    #[doc(hidden)]
    #[cold]
    #[must_use]
    pub fn prepend_metadata(mut self, headers: &HeaderMap) -> Self {
        if !headers.is_empty() {
            let mut all = headers.clone();
            for (name, value) in self.0.metadata.as_ref() {
                all.append(name, value.clone());
            }
            self.0.metadata = MetadataMap::from_headers(all);
            self.0.headers = Some(Box::new(headers.clone()));
        }
        self
    }

    /// Returns the metadata of headers and of trailers apart, for API layers that keep them apart.
    #[doc(hidden)]
    pub fn metadata_apart(&self) -> (HeaderMap, HeaderMap) {
        let all = self.0.metadata.as_ref();
        let Some(headers) = self.0.headers.as_deref() else { return (HeaderMap::new(), all.clone()) };
        let mut trailers = HeaderMap::new();
        for name in all.keys() {
            let in_headers = headers.get_all(name).iter().count();
            for value in all.get_all(name).iter().skip(in_headers) {
                trailers.append(name, value.clone());
            }
        }
        (headers.clone(), trailers)
    }

    /// Returns code, message, details and metadata.
    #[doc(hidden)]
    pub fn into_parts(self) -> (Code, String, Bytes, MetadataMap) {
        let StatusParts { code, message, details, metadata, .. } = *self.0;
        (code, message.into_owned(), details, metadata)
    }
}
