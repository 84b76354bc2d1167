//! The method HEAD.

use http::Response;
use http::header::CONTENT_LENGTH;
use http_body::Body as _;

use crate::body::Body;

/// What HEAD is answered where GET were answered so, and other methods are.
pub(super) fn of_head(is_head: bool, answer: Response<Body>) -> Response<Body> {
    if !is_head {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    if let Some(len) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, len.into());
    }
    Response::from_parts(head, Body::empty())
}
