//! The parts of the suite's messages (`connectrpc.conformance.v1`) that a server needs, by field number. Messages with
//! the same fields share a type.

/// A header or trailer with all its values.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Header {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) value: Vec<String>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Any {
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}

/// The error that a call is to end with.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Error {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, optional, tag = "2")]
    pub(crate) message: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// Instructions for a call with one response.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UnaryResponseDefinition {
    #[prost(message, repeated, tag = "1")]
    pub(crate) response_headers: Vec<Header>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) response_data: Option<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    pub(crate) error: Option<Error>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) response_trailers: Vec<Header>,
    #[prost(uint32, tag = "6")]
    pub(crate) response_delay_ms: u32,
}

/// Instructions for a call with a stream of responses.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StreamResponseDefinition {
    #[prost(message, repeated, tag = "1")]
    pub(crate) response_headers: Vec<Header>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) response_data: Vec<Vec<u8>>,
    #[prost(uint32, tag = "3")]
    pub(crate) response_delay_ms: u32,
    #[prost(message, optional, tag = "4")]
    pub(crate) error: Option<Error>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) response_trailers: Vec<Header>,
}

/// `UnaryRequest`, `IdempotentUnaryRequest` and `ClientStreamRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UnaryRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) response_definition: Option<UnaryResponseDefinition>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) request_data: Vec<u8>,
}

/// `ServerStreamRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServerStreamRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) response_definition: Option<StreamResponseDefinition>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) request_data: Vec<u8>,
}

/// `BidiStreamRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BidiStreamRequest {
    #[prost(message, optional, tag = "1")]
    pub(crate) response_definition: Option<StreamResponseDefinition>,
    #[prost(bool, tag = "2")]
    pub(crate) full_duplex: bool,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) request_data: Vec<u8>,
}

/// Common type of the responses.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UnaryResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) payload: Option<ConformancePayload>,
}

/// The payload of a response.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ConformancePayload {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(crate) request_info: Option<RequestInfo>,
}

/// A server's view of a request.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RequestInfo {
    #[prost(message, repeated, tag = "1")]
    pub(crate) request_headers: Vec<Header>,
    #[prost(int64, optional, tag = "2")]
    pub(crate) timeout_ms: Option<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) requests: Vec<Any>,
}

/// The server's settings.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServerCompatRequest {
    #[prost(bool, tag = "4")]
    pub(crate) use_tls: bool,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) client_tls_cert: Vec<u8>,
    #[prost(uint32, tag = "6")]
    pub(crate) message_receive_limit: u32,
    #[prost(message, optional, tag = "7")]
    pub(crate) server_creds: Option<TlsCreds>,
}

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TlsCreds {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) cert: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
}

/// The server's address.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ServerCompatResponse {
    #[prost(string, tag = "1")]
    pub(crate) host: String,
    #[prost(uint32, tag = "2")]
    pub(crate) port: u32,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) pem_cert: Vec<u8>,
}
