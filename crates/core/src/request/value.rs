//! [`Request`]: a message or stream with metadata.

use std::time::Duration;

use http::{Extensions, HeaderValue};

use crate::metadata::{MetadataMap, MetadataValue};
use crate::timeout::TimeoutValue;

/// A message or stream for a server, with metadata.
#[derive(Debug)]
pub struct Request<T> {
    metadata: MetadataMap,
    message: T,
    extensions: Extensions,
}

impl<T> Request<T> {
    /// Creates a request without metadata.
    pub fn new(message: T) -> Self {
        Self::from_parts(MetadataMap::new(), Extensions::new(), message)
    }

    /// Creates a request from its parts.
    pub fn from_parts(metadata: MetadataMap, extensions: Extensions, message: T) -> Self {
        Self { metadata, message, extensions }
    }

    /// Takes an HTTP request. Its headers become the metadata.
    pub fn from_http(request: http::Request<T>) -> Self {
        let (head, message) = request.into_parts();
        Self::from_http_parts(head, message)
    }

    /// Takes the head of an HTTP request with a message.
    #[doc(hidden)]
    pub fn from_http_parts(head: http::request::Parts, message: T) -> Self {
        Self::from_parts(MetadataMap::from_headers(head.headers), head.extensions, message)
    }

    /// Returns an HTTP request. If `is_sanitized`, headers that gRPC writes itself are left out.
    #[doc(hidden)]
    pub fn into_http(
        self,
        uri: http::Uri,
        method: http::Method,
        version: http::Version,
        is_sanitized: bool,
    ) -> http::Request<T> {
        let mut request = http::Request::new(self.message);
        *request.version_mut() = version;
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() =
            if is_sanitized { self.metadata.into_sanitized_headers() } else { self.metadata.into_headers() };
        *request.extensions_mut() = self.extensions;
        request
    }

    /// Returns the message.
    pub fn get_ref(&self) -> &T {
        &self.message
    }

    /// Returns the message.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.message
    }

    /// Returns the metadata.
    pub fn metadata(&self) -> &MetadataMap {
        &self.metadata
    }

    /// Returns the metadata.
    pub fn metadata_mut(&mut self) -> &mut MetadataMap {
        &mut self.metadata
    }

    /// Returns values that interceptors, layers and handlers share; they are not sent.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Returns values that interceptors, layers and handlers share; they are not sent.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    /// Returns the message.
    pub fn into_inner(self) -> T {
        self.message
    }

    /// Returns all parts.
    pub fn into_parts(self) -> (MetadataMap, Extensions, T) {
        (self.metadata, self.extensions, self.message)
    }

    #[doc(hidden)]
    pub fn map<F: FnOnce(T) -> U, U>(self, of: F) -> Request<U> {
        Request::from_parts(self.metadata, self.extensions, of(self.message))
    }

    /// Sets the time within which the call must end; none by default.
    ///
    /// It is the metadata `grpc-timeout`, so the server knows it too. Precision is at least 1 in 100,000, rounded down;
    /// the maximum is 99,999,999 hours. A late call ends with DEADLINE_EXCEEDED, or with CANCELLED by a channel's own
    /// timeout.
    pub fn set_timeout(&mut self, timeout: Duration) {
        let value =
            HeaderValue::from_bytes(TimeoutValue::new(timeout).as_bytes()).expect("digits and a letter");
        self.metadata.insert("grpc-timeout", MetadataValue::of(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_request_keeps_metadata_and_extensions() {
        let request = || {
            let mut request = Request::new(1).map(|number| number + 1);
            request.metadata_mut().insert("a", "b".parse().unwrap());
            request.metadata_mut().insert("te", "trailers".parse().unwrap());
            request.extensions_mut().insert(7_u8);
            request
        };
        let into_http = |is_sanitized| {
            request().into_http(
                "/s/m".parse().unwrap(),
                http::Method::POST,
                http::Version::HTTP_2,
                is_sanitized,
            )
        };
        assert_eq!((into_http(true).headers().len(), into_http(false).headers().len()), (1, 2));
        let http = into_http(true);
        assert_eq!(
            (http.method(), http.uri().path(), http.version()),
            (&http::Method::POST, "/s/m", http::Version::HTTP_2)
        );
        let request = Request::from_http(http);
        assert_eq!(
            (request.metadata().get("a").unwrap(), request.extensions().get()),
            (&"b".parse().unwrap(), Some(&7_u8))
        );
        assert_eq!((*request.get_ref(), request.into_inner()), (2, 2));
    }

    #[test]
    fn timeout_is_metadata() {
        let check = |timeout: Duration| {
            let mut request = Request::new(());
            request.set_timeout(timeout);
            let value = request.metadata().get("grpc-timeout").unwrap().as_bytes();
            let mut theirs = tonic::Request::new(());
            theirs.set_timeout(timeout);
            let theirs = theirs.metadata().get("grpc-timeout").unwrap().as_bytes();
            // A coarser unit if that is exact, otherwise as tonic.
            assert_eq!(crate::timeout::parse(value), crate::timeout::parse(theirs));
        };
        [0, 1, 999, 1_500, 100_000, 86_400_000].into_iter().map(Duration::from_millis).for_each(check);
    }
}
