//! Framing of response streams in JSON.

use crate::content_type::list_items;

/// Separation of the messages of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each message on a line: NDJSON.
    Lines,
    /// Server-sent events, for [`EventSource`](https://html.spec.whatwg.org/multipage/server-sent-events.html) in
    /// browsers.
    Events,
    /// Elements of one array.
    Array,
}

impl Framing {
    /// Returns the framing that the client prefers in its `accept` (RFC 9110 §12.5.1): highest quality, then named
    /// before `*/*`, then first. [`Framing::Lines`] if it names none.
    pub fn by_accept<'a>(accept: impl Iterator<Item = &'a [u8]>) -> Framing {
        let mut best: Option<((u16, bool), Framing)> = None;
        for (range, quality) in list_items(accept).filter(|(_, quality)| *quality > 0) {
            if let Some((is_named, framing)) = range_of(range)
                && best.is_none_or(|(best_rank, _)| best_rank < (quality, is_named))
            {
                best = Some(((quality, is_named), framing));
            }
        }
        best.map_or(Framing::Lines, |(_, framing)| framing)
    }

    /// Returns the content type of the body.
    pub fn content_type(self) -> &'static str {
        match self {
            Framing::Lines => "application/x-ndjson",
            Framing::Events => "text/event-stream",
            Framing::Array => "application/json",
        }
    }

    /// Appends a message, which `put` writes as one line of JSON.
    ///
    /// # Errors
    /// Those of `put`; `body` is then unchanged.
    pub fn put_message<E>(
        self,
        is_first: bool,
        body: &mut Vec<u8>,
        put: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = body.len();
        let (prefix, suffix): (&[u8], &[u8]) = match self {
            Framing::Lines => (b"", b"\n"),
            Framing::Events => (b"data: ", b"\n\n"),
            Framing::Array => (if is_first { b"[" } else { b",\n" }, b""),
        };
        body.extend_from_slice(prefix);
        put(body).inspect_err(|_| body.truncate(start))?;
        body.extend_from_slice(suffix);
        Ok(())
    }

    /// Appends the end of the body.
    pub fn put_end(self, is_empty: bool, body: &mut Vec<u8>) {
        match self {
            Framing::Lines => {}
            // Tells browsers not to reconnect. Events without data are ignored.
            Framing::Events => body.extend_from_slice(b"event: end\ndata: {}\n\n"),
            Framing::Array => body.extend_from_slice(if is_empty { b"[]" } else { b"]" }),
        }
    }

    /// Appends the end of a failed call; `status` is the JSON of a `google.rpc.Status`.
    pub fn put_failure(self, is_first: bool, status: &[u8], body: &mut Vec<u8>) {
        let (prefix, suffix): (&[u8], &[u8]) = match self {
            Framing::Lines => (b"{\"error\":", b"}\n"),
            Framing::Events => (b"event: error\ndata: ", b"\n\n"),
            Framing::Array => (if is_first { b"[{\"error\":" } else { b",\n{\"error\":" }, b"}]"),
        };
        body.extend_from_slice(prefix);
        body.extend_from_slice(status);
        body.extend_from_slice(suffix);
    }
}

/// Returns whether `subtype`, in any case, is an `application/` content type of JSON lines. None is registered.
pub(crate) fn is_json_lines(subtype: &str) -> bool {
    ["x-ndjson", "ndjson", "jsonl", "x-jsonlines"].iter().any(|name| subtype.eq_ignore_ascii_case(name))
}

/// Returns the framing of a media range, and whether the range names it.
fn range_of(range: &str) -> Option<(bool, Framing)> {
    let range = range.to_ascii_lowercase();
    Some(match &*range {
        "text/event-stream" => (true, Framing::Events),
        "application/json" => (true, Framing::Array),
        "*/*" | "application/*" => (false, Framing::Lines),
        "text/*" => (false, Framing::Events),
        _ if range.strip_prefix("application/").is_some_and(is_json_lines) => (true, Framing::Lines),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Framing::{self, Array, Events, Lines};

    #[test]
    fn framing_is_negotiated_by_accept() {
        let check = |accept: &[&str], expected: Framing| {
            let accept_bytes = accept.iter().map(|value| value.as_bytes());
            assert_eq!(Framing::by_accept(accept_bytes), expected, "{accept:?}");
        };
        check(&[], Lines);
        check(&[""], Lines);
        check(&["*/*"], Lines);
        check(&["text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8"], Lines);
        check(&["application/x-ndjson"], Lines);
        check(&["application/json"], Array);
        check(&["application/json, text/plain, */*"], Array);
        check(&["text/event-stream"], Events);
        check(&["TEXT/Event-Stream ; charset=utf-8"], Events);
        check(&["text/*"], Events);
        check(&["application/json;q=0.5, text/event-stream"], Events);
        check(&["application/json;q=0.5", "text/event-stream;q=0.6"], Events);
        check(&["application/json, text/event-stream"], Array);
        check(&["text/event-stream, application/json"], Events);
        check(&["text/event-stream;q=0, application/json;q=0.001"], Array);
        check(&["*/*, text/event-stream"], Events);
        check(&["*/*;q=0.9, text/event-stream;q=0.8"], Lines);
        check(&["application/json;q=x, application/x-ndjson;q=7"], Array);
        check(&["text/html"], Lines);
    }

    /// Returns a body with these messages, and a failure at its end if there is one.
    fn body(framing: Framing, messages: &[&str], failure: Option<&str>) -> String {
        let mut body = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            let put = |body: &mut Vec<u8>| {
                body.extend_from_slice(message.as_bytes());
                Ok::<(), ()>(())
            };
            framing.put_message(index == 0, &mut body, put).unwrap();
            let before = body.clone();
            let fail = |body: &mut Vec<u8>| {
                body.extend_from_slice(b"{\"half");
                Err(())
            };
            assert_eq!(framing.put_message(false, &mut body, fail), Err(()));
            assert_eq!(body, before);
        }
        match failure {
            None => framing.put_end(messages.is_empty(), &mut body),
            Some(status) => framing.put_failure(messages.is_empty(), status.as_bytes(), &mut body),
        }
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn bodies() {
        let check = |framing, messages: &[&str], failure, expected: &str| {
            assert_eq!(body(framing, messages, failure), expected);
        };
        let (both, failure) = (["{\"a\":1}", "{}"], Some("{\"code\":5}"));
        check(Lines, &[], None, "");
        check(Lines, &both, None, "{\"a\":1}\n{}\n");
        check(Lines, &both, failure, "{\"a\":1}\n{}\n{\"error\":{\"code\":5}}\n");
        check(Lines, &[], failure, "{\"error\":{\"code\":5}}\n");
        check(Events, &[], None, "event: end\ndata: {}\n\n");
        check(Events, &both, None, "data: {\"a\":1}\n\ndata: {}\n\nevent: end\ndata: {}\n\n");
        check(Events, &both, failure, "data: {\"a\":1}\n\ndata: {}\n\nevent: error\ndata: {\"code\":5}\n\n");
        check(Array, &[], None, "[]");
        check(Array, &both, None, "[{\"a\":1},\n{}]");
        check(Array, &both, failure, "[{\"a\":1},\n{},\n{\"error\":{\"code\":5}}]");
        check(Array, &[], failure, "[{\"error\":{\"code\":5}}]");
    }
}
