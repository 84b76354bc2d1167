//! Cache of the last head: [`HeadCache`].

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use thalweg_engine::raw::RawHead;

/// The last head of an HTTP/1.1 connection and its result. Most clients repeat requests that differ only in the body.
#[derive(Debug)]
pub(crate) struct HeadCache<R>(Mutex<Option<CachedHead<R>>>);

#[derive(Debug)]
struct CachedHead<R> {
    method: Method,
    uri: Uri,
    version: Version,
    /// All except `content-length`, which no protocol reads.
    fields: Vec<(HeaderName, HeaderValue)>,
    read: R,
}

/// Maximum size of a cached head, in bytes.
const SIZE_MAX: usize = 2 << 10;

impl<R> Default for HeadCache<R> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<R: Clone> HeadCache<R> {
    /// Returns the cached result if `head` equals the last one, otherwise that of `read`. `None` is not cached.
    pub(crate) fn read(&self, head: &RawHead<'_>, read: impl FnOnce(&RawHead<'_>) -> Option<R>) -> Option<R> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cached) = &*last
            && cached.matches(head)
        {
            return Some(cached.read.clone());
        }
        if size(head) > SIZE_MAX {
            *last = None;
            return read(head);
        }
        let Some((uri, headers)) = detached(head) else { return read(head) };
        let read = read(&RawHead { uri: &uri, headers: &headers, ..*head });
        *last = read.as_ref().map(|read| CachedHead {
            method: head.method.clone(),
            version: head.version,
            fields: fields(&headers).map(|(name, value)| (name.clone(), value.clone())).collect(),
            uri,
            read: read.clone(),
        });
        read
    }
}

impl<R> CachedHead<R> {
    fn matches(&self, head: &RawHead<'_>) -> bool {
        let mut expected = self.fields.iter().map(|(name, value)| (name, value));
        self.method == *head.method
            && self.version == head.version
            && fields(head.headers).all(|field| expected.next() == Some(field))
            && expected.next().is_none()
            && self.uri == *head.uri
    }
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| **name != CONTENT_LENGTH)
}

/// Copies URI and fields: the received ones would keep their read buffer alive, which may be large.
fn detached(head: &RawHead<'_>) -> Option<(Uri, HeaderMap)> {
    let mut bytes = head.uri.to_string().into_bytes();
    let uri_len = bytes.len();
    head.headers.values().for_each(|value| bytes.extend_from_slice(value.as_bytes()));
    let bytes = Bytes::from(bytes);
    let uri = Uri::from_maybe_shared(bytes.slice(..uri_len)).ok()?;
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    let mut at = uri_len;
    for (name, value) in head.headers {
        let end = at + value.len();
        headers.append(name.clone(), HeaderValue::from_maybe_shared(bytes.slice(at..end)).ok()?);
        at = end;
    }
    Some((uri, headers))
}

fn size(head: &RawHead<'_>) -> usize {
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    head.uri.path_and_query().map_or(0, |path| path.as_str().len()) + fields.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::headers;

    #[test]
    fn identical_heads_are_read_once() {
        let cache = HeadCache::default();
        let mut count = 0;
        let mut check = |method: Method, uri: &'static str, list: &[(&str, &str)], is_read: bool| {
            let (uri, headers) = (Uri::from_static(uri), headers(list));
            let head = RawHead {
                method: &method,
                uri: &uri,
                version: Version::HTTP_11,
                headers: &headers,
                connection: None,
            };
            let before = count;
            cache.read(&head, |_| {
                count += 1;
                Some(())
            });
            assert_eq!(count - before, usize::from(is_read), "{method} {uri} {list:?}");
        };
        let json = ("content-type", "application/json");
        check(Method::POST, "/a", &[json], true);
        check(Method::POST, "/a", &[json], false);
        check(Method::POST, "/a", &[("content-length", "1"), json], false);
        check(Method::POST, "/a", &[json, ("content-length", "22")], false);
        check(Method::PUT, "/a", &[json], true);
        check(Method::PUT, "/b", &[json], true);
        check(Method::PUT, "/b?c", &[json], true);
        check(Method::PUT, "/b?c", &[json, ("x-a", "1")], true);
        check(Method::PUT, "/b?c", &[json, ("x-a", "2")], true);
        check(Method::PUT, "/b?c", &[json, ("x-a", "2"), ("x-a", "3")], true);
        check(Method::PUT, "/b?c", &[json, ("x-a", "2"), ("x-a", "3")], false);
        check(Method::PUT, "/b?c", &[json], true);
        let long = "x".repeat(SIZE_MAX);
        check(Method::PUT, "/b?c", &[json, ("x-a", &long)], true);
        check(Method::PUT, "/b?c", &[json, ("x-a", &long)], true);
        check(Method::PUT, "/b?c", &[json], true);
    }

    /// The read buffer of a head may be hundreds of kilobytes and must be freed.
    #[test]
    fn cached_head_does_not_share_read_buffer() {
        let buffer = Bytes::from(b"/path?queryvalue".to_vec());
        let uri = Uri::from_maybe_shared(buffer.slice(..11)).unwrap();
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_maybe_shared(buffer.slice(11..)).unwrap());
        let cache = HeadCache::default();
        let (method, version) = (&Method::GET, Version::HTTP_11);
        let head = RawHead { method, uri: &uri, version, headers: &headers, connection: None };
        let read = cache.read(&head, |detached| Some((detached.uri.clone(), detached.headers.clone())));
        assert_eq!(read, Some((uri.clone(), headers.clone())));
        drop((uri, headers));
        assert!(buffer.is_unique(), "it is kept");
    }

    #[test]
    fn missing_result_is_not_cached() {
        let (cache, headers) = (HeadCache::default(), HeaderMap::new());
        let (method, uri, version) = (&Method::GET, &Uri::from_static("/"), Version::HTTP_11);
        let head = RawHead { method, uri, version, headers: &headers, connection: None };
        let actual = [None, Some(1), Some(2)].map(|read| cache.read(&head, |_| read));
        assert_eq!(actual, [None, Some(1), Some(1)]);
    }
}
