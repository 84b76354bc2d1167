//! Responses for hyper.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH};
use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body::{Frame, SizeHint};
use thalweg_engine::Status;
use thalweg_engine::server::Http1Admission;

use super::progress::ActiveRequest;
use crate::body::Body;

/// Returns a response to a request with `method` that hyper can send. `is_last` adds `connection: close`.
pub(super) fn prepare(
    response: Response<Body>,
    method: &Method,
    is_last: bool,
    active_request: ActiveRequest,
) -> Response<ResponseBody> {
    let (mut head, mut body) = response.into_parts();
    // Upgrades are not supported, and hyper itself sends 100.
    if head.status.is_informational() {
        tracing::debug!(status = %head.status, "a service responded with an informational status");
        head.status = StatusCode::INTERNAL_SERVER_ERROR;
        head.headers.clear();
        body = Body::empty();
    }
    head.version = Version::HTTP_11;
    if *method != Method::HEAD
        && let Some(length) = http_body::Body::size_hint(&body).exact()
        && head.headers.get(CONTENT_LENGTH).is_some_and(|declared| *declared != length.to_string())
    {
        // hyper would send it unchanged, and clients would take the next response for the rest of this one.
        head.headers.remove(CONTENT_LENGTH);
    }
    if is_last {
        head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let admission = active_request.progress.admission();
    Response::from_parts(head, ResponseBody { body, admission, active_request })
}

/// Unsent response bytes at which a response body pauses.
const UNSENT_MAX: usize = 256 << 10;

/// A response body. Dropping it marks the request as answered.
pub(super) struct ResponseBody {
    body: Body,
    admission: Option<Http1Admission>,
    active_request: ActiveRequest,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(admission) = &mut self.admission {
            ready!(admission.poll(UNSENT_MAX, cx));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.active_request.progress.queued(data.len());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
