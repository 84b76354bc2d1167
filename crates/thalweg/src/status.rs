//! Conversions between the engine's statuses and tonic's.
//!
//! Functions rather than `From`, because both types are from other crates.

use thalweg_core::Status;
use thalweg_core::metadata::MetadataMap;
use thalweg_engine as engine;

/// Converts the engine's status to the application's.
#[cold]
pub(crate) fn to_tonic(status: engine::Status) -> Status {
    let engine::StatusParts { code, message, details, metadata } = status.into_parts();
    let metadata = MetadataMap::from_headers(metadata);
    Status::with_details_and_metadata(code, message, details, metadata)
}

/// Converts the application's status to the engine's.
#[cold]
pub(crate) fn to_engine(status: &Status) -> engine::Status {
    engine::Status::from(engine::StatusParts {
        code: status.code(),
        message: status.message().to_owned().into(),
        details: status.details().to_vec().into(),
        metadata: status.metadata().as_ref().clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_survives_conversion_to_engine_and_back() {
        for code in thalweg_core::Code::ALL {
            let mut metadata = MetadataMap::new();
            metadata.insert("x-a", "b".parse().unwrap());
            metadata.insert_bin("x-bin", thalweg_core::metadata::MetadataValue::from_bytes(b"c"));
            let details = bytes::Bytes::from_static(b"details");
            let sent = Status::with_details_and_metadata(code, "message", details, metadata);
            let received = to_tonic(to_engine(&sent));
            assert_eq!(received.code(), code);
            assert_eq!((received.message(), received.details()), ("message", &b"details"[..]));
            assert_eq!(received.metadata().get("x-a").unwrap(), "b");
            assert_eq!(received.metadata().get_bin("x-bin").unwrap(), &b"c"[..]);
        }
    }

    #[test]
    fn timeout_is_in_grpc_timeout_header() {
        let mut request = thalweg_core::Request::new(());
        assert!(request.metadata().as_ref().get("grpc-timeout").is_none());
        request.set_timeout(std::time::Duration::from_millis(1_500));
        assert_eq!(request.metadata().as_ref().get("grpc-timeout").unwrap(), "1500m");
    }
}
