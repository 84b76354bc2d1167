//! Readers of responses, as attempts see them: [`ResponseReader`].

use std::sync::Arc;
use std::task::{Context, Poll};

use super::attempts::FailureKind;
use crate::connection::{End, Incoming, RawReader};
use crate::grpc::response::ResponseHeaders;
use crate::status::Status;

/// Reader of a response.
pub(super) trait ResponseReader {
    /// Polls for the response headers, or the end that arrived instead.
    fn poll_headers(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<ResponseHeaders>, End>>;

    /// Returns the status in response headers without a response (Trailers-Only), if the reader returns such headers.
    fn failure(&self, headers: &ResponseHeaders) -> Option<Status>;

    /// Returns the failure of an attempt that got no response.
    fn attempt_failure(&self, headers: &Result<Arc<ResponseHeaders>, End>) -> Option<(Status, FailureKind)> {
        let (status, kind) = match headers {
            Ok(headers) => (self.failure(headers)?, FailureKind::Processed),
            Err(End::Complete(Ok(_))) => return None,
            Err(End::Complete(Err(status)) | End::Lost { status, unprocessed: false }) => {
                (status.clone(), FailureKind::Processed)
            }
            Err(End::Lost { status, unprocessed: true }) => (status.clone(), FailureKind::Unprocessed),
        };
        Some((status, kind))
    }
}

impl ResponseReader for Incoming {
    fn poll_headers(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<ResponseHeaders>, End>> {
        Self::poll_headers(self, cx)
    }

    fn failure(&self, _: &ResponseHeaders) -> Option<Status> {
        None
    }
}

impl ResponseReader for Box<RawReader> {
    fn poll_headers(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<ResponseHeaders>, End>> {
        RawReader::poll_headers(self, cx)
    }

    fn failure(&self, headers: &ResponseHeaders) -> Option<Status> {
        headers.failure()
    }
}
