//! Responses to in-process callers, equal to those over a connection.

use std::pin::Pin;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use thalweg_http2::FieldList;

use crate::connection::{Outgoing, Single, put_encode_buffer, take_encode_buffer};
use crate::encode::Encode;
use crate::grpc::envelope::PREFIX_LEN;
use crate::grpc::{codec, metadata, response, status};
use crate::server::respond::MessageResponse;
use crate::status::Status;

/// A response with one message, as its caller receives it.
#[derive(Clone, Debug, Default)]
pub struct LocalResponse {
    /// The initial metadata.
    pub metadata: HeaderMap,
    /// The message, without prefix and uncompressed.
    pub message: Bytes,
    /// The trailing metadata.
    pub trailers: HeaderMap,
}

/// Outcome of a call: trailing metadata or a status.
pub(in crate::server) type LocalOutcome = Result<HeaderMap, Status>;

/// A running unary handler. It may end without a response.
pub(in crate::server) type LocalFuture =
    Pin<Box<dyn Future<Output = Result<LocalResponse, LocalOutcome>> + Send>>;

impl LocalResponse {
    /// Encodes the result of a handler.
    pub(in crate::server) fn of<M: Encode>(
        result: Result<MessageResponse<'_, M>, Status>,
        outgoing: &Outgoing,
    ) -> Result<Self, LocalOutcome> {
        let response = result.map_err(|status| received_outcome(Err(&status)))?;
        let message = encode(&response.message, outgoing).map_err(Err)?;
        let metadata = received_headers(response.metadata).map_err(Err)?;
        let trailers = received_outcome(Ok(response.trailers)).map_err(Err)?;
        Ok(Self { metadata, message, trailers })
    }
}

/// Converts an outcome without the expected message to a status. A handler may fail with `Code::Ok`.
pub(in crate::server) fn failure(outcome: LocalOutcome) -> Status {
    outcome.err().unwrap_or_else(codec::no_message)
}

/// Encodes a message without prefix or compression.
pub(super) fn encode<M: Encode>(message: &M, outgoing: &Outgoing) -> Result<Bytes, Status> {
    let prefix_len = if M::IS_FRAMED { 0 } else { PREFIX_LEN };
    let mut encode_buffer = take_encode_buffer();
    let encoded = outgoing.encode_single(message, &mut encode_buffer).map(|single| match single {
        Single::Small(range) => Bytes::copy_from_slice(&encode_buffer[range][prefix_len..]),
        Single::Large(mut wire) => in_one_piece(wire.take_parts(), prefix_len),
    });
    put_encode_buffer(encode_buffer);
    encoded
}

/// Joins `parts` without the first `skipped` bytes, all in the first part. Copies only if several parts remain.
fn in_one_piece(mut parts: Vec<Bytes>, skipped: usize) -> Bytes {
    if let Some(first) = parts.first_mut() {
        first.advance(skipped.min(first.len()));
    }
    parts.retain(|part| !part.is_empty());
    match &mut parts[..] {
        [only] => std::mem::take(only),
        parts => Bytes::from(parts.concat()),
    }
}

/// Converts initial metadata to its received form, without the fields written by the transport.
pub(super) fn received_headers(sent: &HeaderMap) -> Result<HeaderMap, Status> {
    if sent.is_empty() {
        return Ok(HeaderMap::new());
    }
    let mut fields = FieldList::new();
    metadata::emit(sent, metadata::SENT_SIZE_MAX, &mut fields)?;
    Ok(metadata::receive(fields.iter())?)
}

/// Converts an outcome to its received form.
pub(in crate::server) fn received_outcome(sent: Result<Option<&HeaderMap>, &Status>) -> LocalOutcome {
    let sent = match sent {
        Ok(None) => return Ok(HeaderMap::new()),
        Ok(Some(trailers)) => Ok(trailers),
        Err(status) => Err(status),
    };
    let mut fields = FieldList::new();
    status::emit(sent, metadata::SENT_SIZE_MAX, &mut fields);
    response::receive_trailers(fields.iter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::compression::Encoding;
    use crate::grpc::testing::Plain;
    use crate::status::Code;
    use thalweg_core::chain::Chain;

    /// A large part kept by reference, with bytes around it.
    struct Kept(Bytes);

    impl Encode for Kept {
        fn encoded_len(&self) -> usize {
            self.0.len() + 2
        }

        fn encode(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&[b"<", &self.0[..], b">"].concat());
        }

        fn encode_chained(&self, out: &mut Chain) {
            out.buffer().push(b'<');
            out.push(self.0.clone());
            out.buffer().push(b'>');
        }
    }

    #[test]
    fn messages_have_no_prefix() {
        let outgoing = Outgoing::new(20_002, Encoding::Identity, 0);
        for len in [0, 1, 4096, 4097, 20_000] {
            assert_eq!(encode(&Plain(&vec![7; len]), &outgoing).unwrap(), vec![7; len]);
            let kept = encode(&Kept(vec![7; len].into()), &outgoing).unwrap();
            assert_eq!((kept.len(), kept[0], kept[len + 1]), (len + 2, b'<', b'>'));
        }
        let status = encode(&Plain(&vec![7; 20_003]), &outgoing).unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
    }

    #[test]
    fn metadata_and_statuses_arrive() {
        let mut sent = HeaderMap::new();
        sent.insert("x-a", "b".parse().unwrap());
        sent.insert("grpc-status", "3".parse().unwrap());
        assert_eq!(received_headers(&sent).unwrap().len(), 1);
        assert_eq!(received_outcome(Ok(Some(&sent))).unwrap().len(), 1);
        let status = received_outcome(Err(&Status::new(Code::NotFound, "nichts: ü %"))).unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::NotFound, "nichts: ü %"));
        assert!(received_outcome(Err(&Status::new(Code::Ok, "fine"))).unwrap().is_empty());
        sent.insert("x-a", "b".repeat(metadata::SENT_SIZE_MAX).parse().unwrap());
        assert_eq!(received_headers(&sent).unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(received_outcome(Ok(Some(&sent))).unwrap_err().code(), Code::ResourceExhausted);
    }
}
