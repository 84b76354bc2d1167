//! The header `lab-times`.

/// Timestamps of a call on the server, in ns of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerTimestamps {
    /// All bytes of the request have arrived; `None` if the stack does not show it.
    pub(super) received: Option<i64>,
    /// The handler has the request.
    pub(super) decoded: i64,
    /// The handler returns the response.
    pub(super) handled: i64,
    /// All bytes of the response are encoded; `None` if the stack does not show it before it sends the headers.
    pub(super) encoded: Option<i64>,
}

impl ServerTimestamps {
    /// Parses `received=1 decoded=2 handled=3 encoded=4`. The first and the last are optional.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (mut received, mut decoded, mut handled, mut encoded) = (None, None, None, None);
        for word in text.split(' ') {
            let (name, ns) = word.split_once('=')?;
            let moment = match name {
                "received" => &mut received,
                "decoded" => &mut decoded,
                "handled" => &mut handled,
                "encoded" => &mut encoded,
                _ => return None,
            };
            *moment = Some(ns.parse().ok()?);
        }
        Some(Self { received, decoded: decoded?, handled: handled?, encoded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_timestamps_are_parsed() {
        let check = |text: &str, expected: Option<ServerTimestamps>| {
            assert_eq!(ServerTimestamps::parse(text), expected, "{text}");
        };
        let handler = ServerTimestamps { received: None, decoded: 2, handled: 3, encoded: None };
        check("decoded=2 handled=3", Some(handler));
        check(
            "received=1 decoded=2 handled=3 encoded=4",
            Some(ServerTimestamps { received: Some(1), encoded: Some(4), ..handler }),
        );
        for text in
            ["", "decoded=2", "decoded=2 handled=x", "decoded=2 handled=3 gone=4", "decoded=2,handled=3"]
        {
            check(text, None);
        }
    }
}
