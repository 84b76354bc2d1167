//! `grpc-timeout` in the metadata of a request.

use std::time::Duration;

use http::HeaderMap;
use thalweg_core::timeout::from_metadata;

use crate::status::Status;

/// Returns the timeout in a request's metadata, stored there by `Request::set_timeout`.
///
/// # Errors
/// INTERNAL if it is malformed.
pub fn request_timeout(metadata: &HeaderMap) -> Result<Option<Duration>, Status> {
    Ok(from_metadata(metadata)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Code;

    #[test]
    fn malformed_timeout_is_internal() {
        let metadata = HeaderMap::from_iter([(thalweg_core::timeout::NAME, "1s".parse().unwrap())]);
        assert_eq!(request_timeout(&metadata).unwrap_err().code(), Code::Internal);
    }
}
