//! The fields of `grpc/testing/messages.proto` that BenchmarkService uses.

#[derive(Clone, PartialEq, prost::Message)]
pub struct Payload {
    #[prost(bytes = "vec", tag = "2")]
    pub body: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SimpleRequest {
    #[prost(int32, tag = "2")]
    pub response_size: i32,
    #[prost(message, optional, tag = "3")]
    pub payload: Option<Payload>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct SimpleResponse {
    #[prost(message, optional, tag = "1")]
    pub payload: Option<Payload>,
}

/// As many zeros; none is no payload, so that an empty message is empty.
pub fn payload(size: usize) -> Option<Payload> {
    (size > 0).then(|| Payload { body: vec![0; size] })
}
