//! A response with its metadata.

use http::Extensions;

use crate::metadata::MetadataMap;

/// A message or stream from a server, with the metadata of the response headers.
#[derive(Debug)]
pub struct Response<T> {
    metadata: MetadataMap,
    message: T,
    extensions: Extensions,
}

impl<T> Response<T> {
    /// Creates a response without metadata.
    pub fn new(message: T) -> Self {
        Self::from_parts(MetadataMap::new(), message, Extensions::new())
    }

    /// Creates a response from its parts.
    pub fn from_parts(metadata: MetadataMap, message: T, extensions: Extensions) -> Self {
        Self { metadata, message, extensions }
    }

    /// Takes an HTTP response.
    #[doc(hidden)]
    pub fn from_http(response: http::Response<T>) -> Self {
        let (head, message) = response.into_parts();
        Self::from_parts(MetadataMap::from_headers(head.headers), message, head.extensions)
    }

    /// Returns an HTTP/2 response, without the headers that gRPC writes itself.
    #[doc(hidden)]
    pub fn into_http(self) -> http::Response<T> {
        let mut response = http::Response::new(self.message);
        *response.version_mut() = http::Version::HTTP_2;
        *response.headers_mut() = self.metadata.into_sanitized_headers();
        *response.extensions_mut() = self.extensions;
        response
    }

    /// Returns the message.
    pub fn get_ref(&self) -> &T {
        &self.message
    }

    /// Returns the message.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.message
    }

    /// Returns the metadata of the headers.
    pub fn metadata(&self) -> &MetadataMap {
        &self.metadata
    }

    /// Returns the metadata of the headers.
    pub fn metadata_mut(&mut self) -> &mut MetadataMap {
        &mut self.metadata
    }

    /// Returns values that layers share; they are not sent.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Returns values that layers share; they are not sent.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    /// Returns the message.
    pub fn into_inner(self) -> T {
        self.message
    }

    /// Returns all parts.
    pub fn into_parts(self) -> (MetadataMap, T, Extensions) {
        (self.metadata, self.message, self.extensions)
    }

    #[doc(hidden)]
    pub fn map<F: FnOnce(T) -> U, U>(self, of: F) -> Response<U> {
        Response::from_parts(self.metadata, of(self.message), self.extensions)
    }

    /// Sends the message as it is, although the server compresses its responses.
    ///
    /// Only for unary and client-streaming calls.
    #[cfg(any(feature = "gzip", feature = "deflate", feature = "zstd"))]
    pub fn disable_compression(&mut self) {
        self.extensions_mut().insert(crate::codec::SingleMessageCompressionOverride::Disable);
    }
}

impl<T> From<T> for Response<T> {
    fn from(message: T) -> Self {
        Self::new(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_response_keeps_metadata_and_extensions() {
        let mut response = Response::new(1).map(|number| number + 1);
        response.metadata_mut().insert("a", "b".parse().unwrap());
        response.metadata_mut().insert("te", "trailers".parse().unwrap());
        response.extensions_mut().insert(7_u8);
        let http = response.into_http();
        assert_eq!((http.version(), http.headers().len()), (http::Version::HTTP_2, 1));
        let response = Response::from_http(http);
        assert_eq!(
            (response.metadata().get("a").unwrap(), response.extensions().get()),
            (&"b".parse().unwrap(), Some(&7_u8))
        );
        assert_eq!((*response.get_ref(), response.into_inner()), (2, 2));
    }
}
