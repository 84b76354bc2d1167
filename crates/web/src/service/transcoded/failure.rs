//! Refused requests and failed calls: [`Failure`].

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use thalweg_engine::{Code, Status};

use crate::body::Body;
use crate::fields;
use crate::service::context::Context;
use crate::transcoding::{error, response};

/// A status and its HTTP response.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    http: StatusCode,
    status: Status,
    /// Header that tells the client what is accepted.
    accepted_header: Option<(HeaderName, HeaderValue)>,
}

impl Failure {
    pub(super) fn new(http: StatusCode, status: Status) -> Failure {
        Failure { http, status, accepted_header: None }
    }

    /// 415: the method does not accept the body. The field lists what it accepts.
    pub(super) fn unsupported(why: &str, name: HeaderName, accepted: &str) -> Failure {
        let status = Status::new(Code::Unimplemented, why.to_owned());
        let accepted_header = HeaderValue::try_from(accepted).ok().map(|value| (name, value));
        Failure { http: StatusCode::UNSUPPORTED_MEDIA_TYPE, status, accepted_header }
    }

    /// Returns the failure for an unreadable request message, which is the client's fault.
    pub(super) fn unreadable(status: Status) -> Failure {
        match status.code() {
            // It exceeds the server's limit; the usual HTTP status would suggest a retry, which does not help.
            Code::ResourceExhausted => Failure::new(StatusCode::PAYLOAD_TOO_LARGE, status),
            Code::Internal => Failure::from(Status::new(Code::InvalidArgument, status.message().to_owned())),
            _ => Failure::from(status),
        }
    }

    pub(super) fn status(&self) -> &Status {
        &self.status
    }

    /// Returns the complete response.
    pub(super) fn response(&self, context: &Context) -> Response<Body> {
        let json = error::to_json(&context.schema, &self.status, &context.options.print);
        let mut response = Response::new(Body::full(json));
        *response.status_mut() = self.http;
        let headers = response.headers_mut();
        // Metadata that is too large is omitted, but the status is sent.
        let _ = fields::append(self.status.metadata().as_ref(), "", headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(response::JSON));
        if let Some((name, value)) = &self.accepted_header {
            headers.insert(name, value.clone());
        }
        response
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure::new(error::http_status(status.code()), status)
    }
}
