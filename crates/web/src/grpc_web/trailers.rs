//! Trailers in a body: HTTP/1.1 field lines without the final empty line.

use http::HeaderMap;
use thalweg_engine::http2::fields::{FieldList, Indexing};
use thalweg_engine::{Code, Status, wire};

/// Maximum number of fields in a block, far more than fit into gRPC's metadata limit.
const FIELDS_MAX: usize = 1_000;

/// Encodes the trailers of a call's outcome.
pub(super) fn write(outcome: Result<&HeaderMap, &Status>) -> Vec<u8> {
    let mut fields = FieldList::new();
    wire::emit_trailers(outcome, wire::METADATA_SIZE_MAX, &mut fields);
    let mut block = Vec::with_capacity(fields.size());
    for field in fields.iter() {
        for part in [field.name, b": ", field.value, b"\r\n"] {
            block.extend_from_slice(part);
        }
    }
    block
}

/// Reads the outcome of a call from a block: the trailing metadata, or the status.
///
/// # Errors
/// INTERNAL for a malformed block, RESOURCE_EXHAUSTED for too many fields.
pub(super) fn read(block: &[u8]) -> Result<HeaderMap, Status> {
    let mut fields = FieldList::new();
    let lines = block.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    for line in lines.filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':').filter(|colon| *colon > 0);
        let Some(colon) = colon else {
            let line = String::from_utf8_lossy(line);
            return Err(Status::new(Code::Internal, format!("malformed trailers: invalid field {line:?}")));
        };
        if fields.len() == FIELDS_MAX {
            let why = format!("malformed trailers: more than {FIELDS_MAX} fields");
            return Err(Status::new(Code::ResourceExhausted, why));
        }
        let (name, value) = (line[..colon].to_ascii_lowercase(), line[colon + 1..].trim_ascii());
        fields.push(&name, value, Indexing::Literal);
    }
    wire::receive_trailers(fields.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Seeded, header_lines, headers};

    #[test]
    fn trailer_blocks_round_trip() {
        let check = |outcome: Result<&HeaderMap, &Status>, expected: &str| {
            let block = write(outcome);
            assert_eq!(String::from_utf8(block.clone()).unwrap(), expected);
            match (outcome, read(&block)) {
                (Ok(sent), Ok(read)) => assert_eq!(header_lines(&read), header_lines(sent)),
                (Err(sent), Err(read)) => {
                    assert_eq!((read.code(), read.message()), (sent.code(), sent.message()));
                    assert_eq!(read.details(), sent.details());
                    assert_eq!(
                        header_lines(read.metadata().as_ref()),
                        header_lines(sent.metadata().as_ref())
                    );
                }
                (_, read) => panic!("{read:?}"),
            }
        };
        check(Ok(&HeaderMap::new()), "grpc-status: 0\r\n");
        let metadata = headers(&[("x-a", "1"), ("x-a", "2"), ("x-bin", "YQ")]);
        check(Ok(&metadata), "x-a: 1\r\nx-a: 2\r\nx-bin: YQ\r\ngrpc-status: 0\r\n");
        let status = Status::with_details(Code::NotFound, "no \u{e9}\r\n", bytes::Bytes::from_static(b"a"))
            .prepend_metadata(&headers(&[("x-a", "1")]));
        let expected =
            "x-a: 1\r\ngrpc-status: 5\r\ngrpc-message: no %C3%A9%0D%0A\r\ngrpc-status-details-bin: YQ\r\n";
        check(Err(&status), expected);
    }

    #[test]
    fn trailer_blocks_of_other_servers_are_read() {
        let check = |block: &str, expected: Result<&str, (Code, &str)>| {
            let outcome = read(block.as_bytes()).map(|trailers| header_lines(&trailers));
            let outcome = outcome.as_deref().map_err(|status| (status.code(), status.message()));
            assert_eq!(outcome, expected, "{block:?}");
        };
        check("Grpc-Status:0\nX-A:  b c \n", Ok("x-a: b c"));
        check("grpc-status: 0\r\nx-bin: YQ==,YWI\r\n\r\n", Ok("x-bin: YQ\nx-bin: YWI"));
        check("gRPC-Status: 9\r\ngrpc-Message: a%20b", Err((Code::FailedPrecondition, "a b")));
        let missing = "the server ended the call without grpc-status (a proxy may have dropped the trailers)";
        check("grpc-message: error\r\n", Err((Code::Unknown, missing)));
        check("", Err((Code::Unknown, missing)));
        check("grpc-status", Err((Code::Internal, "malformed trailers: invalid field \"grpc-status\"")));
        check(": 0", Err((Code::Internal, "malformed trailers: invalid field \": 0\"")));
        let name = "malformed metadata name \"a b\": invalid HTTP header name";
        check("a b: 0\r\ngrpc-status: 0", Err((Code::Internal, name)));
        let many = "malformed trailers: more than 1000 fields";
        check(&"a: b\r\n".repeat(1_001), Err((Code::ResourceExhausted, many)));
    }

    #[test]
    fn random_blocks_do_not_panic() {
        let words =
            ["grpc-status", "grpc-message", ":", " ", "\r\n", "\n", "0", "9", "x-bin", "?", "%", "\u{e9}"];
        let mut seeded = Seeded(10);
        for _ in 0..5_000 {
            let _ = read(seeded.words(&words, 0..14).as_bytes());
        }
    }
}
