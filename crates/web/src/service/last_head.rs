//! What the head before has said: [`LastHead`].

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use thalweg_engine::raw::RawHead;

/// The head before of a connection of HTTP/1.1, and what it has said: most clients go on with requests of the same
/// kind, which differ in their bodies alone.
#[derive(Debug)]
pub(crate) struct LastHead<R>(Mutex<Option<Kept<R>>>);

#[derive(Debug)]
struct Kept<R> {
    method: Method,
    uri: Uri,
    version: Version,
    /// All but `content-length`, of which no protocol here reads anything.
    fields: Vec<(HeaderName, HeaderValue)>,
    read: R,
}

/// A larger head is not kept, in bytes.
const SIZE_MAX: usize = 2 << 10;

impl<R> Default for LastHead<R> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<R: Clone> LastHead<R> {
    /// What `read` reads in `head`, or has read in the one before, if they are equal. `None` is not kept.
    pub(crate) fn read(&self, head: &RawHead<'_>, read: impl FnOnce(&RawHead<'_>) -> Option<R>) -> Option<R> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &*last
            && kept.is(head)
        {
            return Some(kept.read.clone());
        }
        if size(head) > SIZE_MAX {
            *last = None;
            return read(head);
        }
        let Some((uri, headers)) = detached(head) else { return read(head) };
        let read = read(&RawHead { uri: &uri, headers: &headers, ..*head });
        *last = read.as_ref().map(|read| Kept {
            method: head.method.clone(),
            version: head.version,
            fields: fields(&headers).map(|(name, value)| (name.clone(), value.clone())).collect(),
            uri,
            read: read.clone(),
        });
        read
    }
}

impl<R> Kept<R> {
    fn is(&self, head: &RawHead<'_>) -> bool {
        let mut own = self.fields.iter().map(|(name, value)| (name, value));
        self.method == *head.method
            && self.version == head.version
            && fields(head.headers).all(|field| own.next() == Some(field))
            && own.next().is_none()
            && self.uri == *head.uri
    }
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| **name != CONTENT_LENGTH)
}

/// URI and fields in memory of their own: those of a head that was read lie in the buffer that it came in, which may be
/// large, and would stay as long as they do.
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
    fn equal_heads_are_read_once() {
        let last = LastHead::default();
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
            last.read(&head, |_| {
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

    /// The buffer that a head came in may be hundreds of kilobytes: it is let go.
    #[test]
    fn what_is_kept_has_memory_of_its_own() {
        let buffer = Bytes::from(b"/path?queryvalue".to_vec());
        let uri = Uri::from_maybe_shared(buffer.slice(..11)).unwrap();
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_maybe_shared(buffer.slice(11..)).unwrap());
        let last = LastHead::default();
        let (method, version) = (&Method::GET, Version::HTTP_11);
        let head = RawHead { method, uri: &uri, version, headers: &headers, connection: None };
        let read = last.read(&head, |own| Some((own.uri.clone(), own.headers.clone())));
        assert_eq!(read, Some((uri.clone(), headers.clone())));
        drop((uri, headers));
        assert!(buffer.is_unique(), "it is kept");
    }

    #[test]
    fn what_is_nothing_is_read_again() {
        let (last, headers) = (LastHead::default(), HeaderMap::new());
        let (method, uri, version) = (&Method::GET, &Uri::from_static("/"), Version::HTTP_11);
        let head = RawHead { method, uri, version, headers: &headers, connection: None };
        let found = [None, Some(1), Some(2)].map(|read| last.read(&head, |_| read));
        assert_eq!(found, [None, Some(1), Some(1)]);
    }
}
