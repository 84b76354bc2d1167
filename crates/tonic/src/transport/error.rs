//! Errors of channels and servers: [`Error`].

use std::fmt;
use std::sync::Arc;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Error of a client or a server of this module.
///
/// Its text names only the kind of failure. The cause is in its [sources](std::error::Error::source), which
/// [`Status::from_error`](crate::Status::from_error) inspects, too.
#[derive(Clone)]
pub struct Error {
    kind: Kind,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "channel", feature = "_tls-any")),
    expect(dead_code, reason = "some are used by clients or TLS only")
)]
pub(crate) enum Kind {
    Transport,
    InvalidUri,
    InvalidUserAgent,
    InvalidTlsConfigForUds,
}

impl Error {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, source: None }
    }

    pub(crate) fn with(self, source: impl Into<BoxError>) -> Self {
        Self { source: Some(source.into().into()), ..self }
    }

    /// Creates a transport error with its cause.
    pub(crate) fn transport(source: impl Into<BoxError>) -> Self {
        Self::new(Kind::Transport).with(source)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("tonic::transport::Error");
        tuple.field(&self.kind);
        if let Some(source) = &self.source {
            tuple.field(source);
        }
        tuple.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Transport => "transport error",
            Kind::InvalidUri => "invalid URI",
            Kind::InvalidUserAgent => "user agent is not a valid header value",
            Kind::InvalidTlsConfigForUds => "cannot apply TLS config for unix domain socket",
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use vocabulary::{Code, ConnectError, Status, TimeoutExpired};

    use super::*;

    #[test]
    fn error_text_is_its_kind_and_source_has_details() {
        let check = |error: Error, text: &str, source: Option<&str>| {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.source().map(ToString::to_string).as_deref(), source);
        };
        check(Error::transport("refused"), "transport error", Some("refused"));
        check(Error::new(Kind::InvalidUri), "invalid URI", None);
        check(Error::new(Kind::InvalidUserAgent), "user agent is not a valid header value", None);
        check(
            Error::new(Kind::InvalidTlsConfigForUds),
            "cannot apply TLS config for unix domain socket",
            None,
        );
        let debug = format!("{:?}", Error::transport("refused"));
        assert_eq!(debug, "tonic::transport::Error(Transport, \"refused\")");
    }

    #[test]
    fn status_is_found_in_sources() {
        let check = |source: BoxError, code: Code, message: &str| {
            let error = Error::transport(Error::transport(source));
            let status = Status::from_error(Box::new(error));
            assert_eq!((status.code(), status.message()), (code, message));
        };
        check(Status::not_found("no such shop").into(), Code::NotFound, "no such shop");
        check(TimeoutExpired(()).into(), Code::Cancelled, "Timeout expired");
        check(ConnectError("refused".into()).into(), Code::Unavailable, "refused");
        check("anything".into(), Code::Unknown, "transport error");
    }
}
