//! Conversions between the engine's status and the application's. With Thalweg's own vocabulary both are one type.

use thalweg_engine as engine;
use vocabulary::Status;

#[cfg(own_vocabulary)]
pub(crate) fn to_tonic(status: engine::Status) -> Status {
    status
}

#[cfg(own_vocabulary)]
pub(crate) fn to_engine(status: Status) -> engine::Status {
    status
}

/// Converts the engine's status to the application's.
#[cfg(not(own_vocabulary))]
#[cold]
pub(crate) fn to_tonic(status: engine::Status) -> Status {
    let (code, message, details, metadata) = status.into_parts();
    let metadata = vocabulary::metadata::MetadataMap::from_headers(metadata.into_headers());
    Status::with_details_and_metadata(i32::from(code).into(), message, details, metadata)
}

/// Converts the application's status to the engine's.
#[cfg(not(own_vocabulary))]
#[cold]
#[expect(clippy::needless_pass_by_value, reason = "the same signature as with one type")]
pub(crate) fn to_engine(status: Status) -> engine::Status {
    let code = engine::Code::from_i32(status.code().into());
    engine::Status::with_details(code, status.message(), bytes::Bytes::copy_from_slice(status.details()))
        .prepend_metadata(status.metadata().as_ref())
}

#[cfg(test)]
mod tests {
    use vocabulary::Code;
    use vocabulary::metadata::MetadataMap;

    use super::*;

    #[test]
    fn status_survives_conversion_to_engine_and_back() {
        for number in 0..17 {
            let mut metadata = MetadataMap::new();
            metadata.insert("x-a", "b".parse().unwrap());
            let details = bytes::Bytes::from_static(b"details");
            let sent =
                Status::with_details_and_metadata(Code::from_i32(number), "message", details, metadata);
            let received = to_tonic(to_engine(sent));
            assert_eq!(received.code() as i32, number);
            assert_eq!((received.message(), received.details()), ("message", &b"details"[..]));
            assert_eq!(received.metadata().get("x-a").unwrap(), "b");
        }
    }
}
