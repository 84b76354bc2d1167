//! Wire formats of calls: [`Protocol`].

/// Wire format of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// [Connect](https://connectrpc.com/docs/protocol), the default. Unary calls are plain HTTP requests.
    #[default]
    Connect,
    /// [gRPC-Web](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md), binary.
    GrpcWeb,
    /// gRPC-Web in Base64, for intermediaries that pass text only.
    GrpcWebText,
}
