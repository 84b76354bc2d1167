//! How calls are written: [`Protocol`].

/// How calls are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// [Connect](https://connectrpc.com/docs/protocol): HTTP's own requests and answers where a call is unary.
    #[default]
    Connect,
    /// [gRPC-Web](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md), binary.
    GrpcWeb,
    /// gRPC-Web in Base64, for what passes on nothing but text.
    GrpcWebText,
}
