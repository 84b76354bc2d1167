//! The parts of the suite's messages (`connectrpc.conformance.v1`) that a client needs, by field number.

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

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(crate) struct TlsCreds {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) cert: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) key: Vec<u8>,
}

/// `google.protobuf.Empty`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Empty {}

/// Time of a call's cancellation.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Cancel {
    #[prost(oneof = "CancelTiming", tags = "1, 2, 3")]
    pub(crate) timing: Option<CancelTiming>,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub(crate) enum CancelTiming {
    #[prost(message, tag = "1")]
    BeforeCloseSend(Empty),
    #[prost(uint32, tag = "2")]
    AfterCloseSendMs(u32),
    #[prost(uint32, tag = "3")]
    AfterNumResponses(u32),
}

/// A call for the client to make.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClientCompatRequest {
    #[prost(string, tag = "1")]
    pub(crate) test_name: String,
    #[prost(int32, tag = "2")]
    pub(crate) http_version: i32,
    #[prost(int32, tag = "3")]
    pub(crate) protocol: i32,
    #[prost(int32, tag = "4")]
    pub(crate) codec: i32,
    #[prost(int32, tag = "5")]
    pub(crate) compression: i32,
    #[prost(string, tag = "6")]
    pub(crate) host: String,
    #[prost(uint32, tag = "7")]
    pub(crate) port: u32,
    #[prost(bytes = "vec", tag = "8")]
    pub(crate) server_tls_cert: Vec<u8>,
    #[prost(message, optional, tag = "9")]
    pub(crate) client_tls_creds: Option<TlsCreds>,
    #[prost(uint32, tag = "10")]
    pub(crate) message_receive_limit: u32,
    #[prost(string, optional, tag = "11")]
    pub(crate) service: Option<String>,
    #[prost(string, optional, tag = "12")]
    pub(crate) method: Option<String>,
    #[prost(int32, tag = "13")]
    pub(crate) stream_type: i32,
    #[prost(bool, tag = "14")]
    pub(crate) use_get_http_method: bool,
    #[prost(message, repeated, tag = "15")]
    pub(crate) request_headers: Vec<Header>,
    #[prost(message, repeated, tag = "16")]
    pub(crate) request_messages: Vec<Any>,
    #[prost(uint32, optional, tag = "17")]
    pub(crate) timeout_ms: Option<u32>,
    #[prost(uint32, tag = "18")]
    pub(crate) request_delay_ms: u32,
    #[prost(message, optional, tag = "19")]
    pub(crate) cancel: Option<Cancel>,
}

/// The outcome of a call.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClientCompatResponse {
    #[prost(string, tag = "1")]
    pub(crate) test_name: String,
    #[prost(oneof = "Outcome", tags = "2, 3")]
    pub(crate) outcome: Option<Outcome>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Outcome {
    #[prost(message, tag = "2")]
    Response(ClientResponseResult),
    #[prost(message, tag = "3")]
    Error(ClientErrorResult),
}

/// The result of a call.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClientResponseResult {
    #[prost(message, repeated, tag = "1")]
    pub(crate) response_headers: Vec<Header>,
    /// Encoded `ConformancePayload`s.
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(crate) payloads: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    pub(crate) error: Option<Error>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) response_trailers: Vec<Header>,
    #[prost(int32, tag = "5")]
    pub(crate) num_unsent_requests: i32,
}

/// The error that a call ended with.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Error {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, optional, tag = "2")]
    pub(crate) message: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// The reason why a call could not be made.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClientErrorResult {
    #[prost(string, tag = "1")]
    pub(crate) message: String,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Status {
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// Common type of the service's responses.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct UnaryResponse {
    /// A `ConformancePayload`.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) payload: Option<Vec<u8>>,
}
