use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use thiserror::Error;

use super::*;
use crate::Code;
use crate::metadata::MetadataValue;
use crate::testing::Seeded;

/// The same status as tonic's type.
fn as_tonic(status: &Status) -> tonic::Status {
    tonic::Status::with_details_and_metadata(
        tonic::Code::from_i32(status.code().into()),
        status.message(),
        Bytes::copy_from_slice(status.details()),
        tonic::metadata::MetadataMap::from_headers(status.metadata().as_ref().clone()),
    )
}

fn sample() -> Status {
    let mut status = Status::with_details(Code::NotFound, "no caf\u{e9}", Bytes::from_static(b"ab"));
    status.metadata_mut().insert("x-a", "b".parse().unwrap());
    status.metadata_mut().insert_bin("x-bin", MetadataValue::from_bytes(b"c"));
    status
}

fn sorted(headers: &HeaderMap) -> BTreeMap<&str, &[u8]> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

#[test]
fn status_is_one_pointer() {
    assert_eq!(size_of::<Status>(), size_of::<usize>());
    assert_eq!(size_of::<Result<(), Status>>(), size_of::<usize>());
}

#[test]
fn constructors_have_their_codes() {
    let check = |constructor: fn(&'static str) -> Status, code: Code| {
        let status = constructor("message");
        assert_eq!((status.code(), status.message()), (code, "message"));
        assert!(status.details().is_empty() && status.metadata().is_empty() && status.source().is_none());
    };
    let constructors: [fn(&'static str) -> Status; 17] = [
        Status::ok,
        Status::cancelled,
        Status::unknown,
        Status::invalid_argument,
        Status::deadline_exceeded,
        Status::not_found,
        Status::already_exists,
        Status::permission_denied,
        Status::resource_exhausted,
        Status::failed_precondition,
        Status::aborted,
        Status::out_of_range,
        Status::unimplemented,
        Status::internal,
        Status::unavailable,
        Status::data_loss,
        Status::unauthenticated,
    ];
    constructors.into_iter().zip(Code::ALL).for_each(|(constructor, code)| check(constructor, code));
}

#[test]
fn fields_are_those_of_tonic() {
    let check = |status: Status| {
        let (mut ours, mut theirs) = (HeaderMap::new(), HeaderMap::new());
        status.add_header(&mut ours).unwrap();
        as_tonic(&status).add_header(&mut theirs).unwrap();
        // tonic codes some more characters, which gRPC's specification leaves as they are.
        let decoded = |headers: &mut HeaderMap| {
            headers
                .remove(GRPC_MESSAGE)
                .map(|value| percent_encoding::percent_decode(value.as_bytes()).collect::<Vec<_>>())
        };
        assert_eq!(decoded(&mut ours.clone()), decoded(&mut theirs.clone()));
        decoded(&mut ours);
        decoded(&mut theirs);
        assert_eq!(sorted(&ours), sorted(&theirs));
    };
    check(Status::new(Code::Ok, ""));
    check(sample());
    for code in Code::ALL {
        check(Status::new(code, "100 % \"<sure>\"\r\n"));
    }
    let mut seeded = Seeded(5);
    for _ in 0..1_000 {
        let message = String::from_utf8_lossy(&seeded.bytes(0..30)).into_owned();
        check(Status::with_details(Code::Aborted, message, seeded.bytes(0..30).into()));
    }
}

#[test]
fn reserved_metadata_is_not_sent() {
    let mut status = sample();
    for name in ["grpc-status", "content-type", "te"] {
        status.metadata_mut().insert(name, "x".parse().unwrap());
    }
    let mut headers = HeaderMap::new();
    status.add_header(&mut headers).unwrap();
    assert_eq!((headers["grpc-status"].as_bytes(), headers.len()), (&b"5"[..], 5));
}

#[test]
fn status_is_read_from_its_fields() {
    let mut headers = HeaderMap::new();
    assert!(Status::from_header_map(&headers).is_none());
    sample().add_header(&mut headers).unwrap();
    let status = Status::from_header_map(&headers).unwrap();
    assert_eq!(format!("{status:?}"), format!("{:?}", sample()));
    assert_eq!(as_tonic(&status).metadata().len(), 2);
}

#[test]
fn broken_fields_lose_no_status() {
    let check = |fields: &[(&'static str, &'static str)], code: Code, message: &str, details: &[u8]| {
        let fields =
            fields.iter().map(|&(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        let status = Status::from_header_map(&fields.collect()).unwrap();
        assert_eq!((status.code(), status.message(), status.details()), (code, message, details));
    };
    check(&[("grpc-status", "5"), ("grpc-message", "%zz%41")], Code::NotFound, "%zzA", b"");
    check(&[("grpc-status", "99"), ("grpc-status-details-bin", "YWI=")], Code::Unknown, "", b"ab");
    check(&[("grpc-status", ""), ("grpc-status-details-bin", "?")], Code::Unknown, "", b"");
}

#[test]
fn http_status_decides_without_grpc_status() {
    let check = |status: u16, code: Option<Code>| {
        let found = outcome(None, StatusCode::from_u16(status).unwrap()).unwrap_err();
        assert_eq!(found.map(|status| status.code()), code, "{status}");
    };
    check(200, None);
    check(204, Some(Code::Unknown));
    check(401, Some(Code::Unauthenticated));

    let trailers = |status: &'static str| {
        HeaderMap::from_iter([
            (GRPC_STATUS, HeaderValue::from_static(status)),
            ("x".parse().unwrap(), HeaderValue::from(1)),
        ])
    };
    assert!(outcome(Some(&trailers("0")), StatusCode::BAD_GATEWAY).is_ok(), "grpc-status goes before");
    let status = outcome(Some(&trailers("14")), StatusCode::OK).unwrap_err().unwrap();
    assert_eq!((status.code(), status.metadata().len()), (Code::Unavailable, 1));
}

#[test]
fn texts_are_built_as_those_of_tonic() {
    let mut with_source = sample();
    with_source.set_source(Arc::new(io::Error::other("oh no")));
    for ours in [Status::new(Code::Internal, ""), Status::aborted("a"), sample(), with_source] {
        let mut theirs = as_tonic(&ours);
        if ours.source().is_some() {
            theirs.set_source(Arc::new(io::Error::other("oh no")));
        }
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        let described =
            theirs.to_string().replacen(theirs.code().description(), ours.code().description(), 1);
        assert_eq!(ours.to_string(), described);
    }
}

#[test]
fn response_has_status_in_headers_and_extensions() {
    let response: http::Response<String> = sample().into_http();
    let theirs: http::Response<String> = as_tonic(&sample()).into_http();
    assert_eq!(response.headers().keys().count(), theirs.headers().keys().count());
    assert_eq!(
        (response.status(), &response.headers()["content-type"]),
        (theirs.status(), &theirs.headers()["content-type"])
    );
    assert_eq!(response.extensions().get::<Status>().unwrap().code(), Code::NotFound);
}

#[derive(Debug, Error)]
#[error("outer")]
struct Outer<E>(#[source] E);

#[test]
fn status_of_an_error_is_found_among_its_sources() {
    let check = |error: Box<dyn Error + Send + Sync>, code: Code, message: &str| {
        let status = Status::from_error(error);
        assert_eq!((status.code(), status.message()), (code, message));
        status.source().map(ToString::to_string)
    };
    assert_eq!(check(Box::new(sample()), Code::NotFound, "no caf\u{e9}"), None);
    assert_eq!(check("text".into(), Code::Unknown, "text").unwrap(), "text");
    assert_eq!(check(Box::new(Outer(Outer(sample()))), Code::NotFound, "no caf\u{e9}").unwrap(), "outer");
    check(Box::new(Outer(TimeoutExpired(()))), Code::Cancelled, "Timeout expired");
    #[cfg(feature = "server")]
    check(
        Box::new(Outer(tower::load_shed::error::Overloaded::new())),
        Code::ResourceExhausted,
        "too many active requests",
    );
    check(Box::new(ConnectError("refused".into())), Code::Unavailable, "refused");
    check(Box::new(Outer(io::Error::other("x"))), Code::Unknown, "outer");
    let error = Status::try_from_error(Box::new(Outer(io::Error::other("x")))).unwrap_err();
    assert!(error.is::<Outer<io::Error>>());
    let found = Status::from_error(Box::new(Outer(sample())));
    assert_eq!((found.details(), found.metadata().len()), (&b"ab"[..], 2));
}

#[test]
fn io_errors_have_the_codes_of_tonic() {
    use io::ErrorKind as Kind;
    for kind in [
        Kind::BrokenPipe,
        Kind::WouldBlock,
        Kind::WriteZero,
        Kind::Interrupted,
        Kind::ConnectionRefused,
        Kind::ConnectionReset,
        Kind::NotConnected,
        Kind::AddrInUse,
        Kind::AddrNotAvailable,
        Kind::AlreadyExists,
        Kind::ConnectionAborted,
        Kind::InvalidData,
        Kind::InvalidInput,
        Kind::NotFound,
        Kind::PermissionDenied,
        Kind::TimedOut,
        Kind::UnexpectedEof,
        Kind::Unsupported,
        Kind::OutOfMemory,
        Kind::Other,
    ] {
        let ours = Status::from(io::Error::new(kind, "text"));
        let theirs = tonic::Status::from(io::Error::new(kind, "text"));
        assert_eq!(
            (i32::from(ours.code()), ours.message()),
            (i32::from(theirs.code()), theirs.message()),
            "{kind:?}"
        );
    }
}

#[cfg(feature = "h2")]
#[test]
fn h2_errors_have_codes() {
    let check = |reason: h2::Reason, code: Code| {
        let status = Status::from_error(Box::new(h2::Error::from(reason)));
        assert_eq!((status.code(), status.source().is_some()), (code, true), "{reason:?}");
    };
    check(h2::Reason::NO_ERROR, Code::Internal);
    check(h2::Reason::COMPRESSION_ERROR, Code::Internal);
    check(h2::Reason::REFUSED_STREAM, Code::Unavailable);
    check(h2::Reason::CANCEL, Code::Cancelled);
    check(h2::Reason::ENHANCE_YOUR_CALM, Code::ResourceExhausted);
    check(h2::Reason::INADEQUATE_SECURITY, Code::PermissionDenied);
    check(h2::Reason::from(77), Code::Unknown);
    let reason = |status: Status| h2::Error::from(status).reason().unwrap();
    assert_eq!(reason(Status::cancelled("")), h2::Reason::CANCEL);
    assert_eq!(reason(Status::aborted("")), h2::Reason::INTERNAL_ERROR);
}
