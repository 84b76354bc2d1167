//! Settings of a client's calls.

use http::uri::{PathAndQuery, Uri};
use vocabulary::Status;
use vocabulary::codec::{CompressionEncoding, EnabledCompressionEncodings};

#[derive(Clone, Default)]
pub(super) struct Config {
    pub(super) origin: Uri,
    /// The origin is more than a path and is not `/`.
    pub(super) has_origin: bool,
    pub(super) accepts: EnabledCompressionEncodings,
    pub(super) sends: Option<CompressionEncoding>,
    pub(super) max_decoding_message_size: Option<usize>,
    pub(super) max_encoding_message_size: Option<usize>,
}

impl Config {
    /// Returns tonic's own client with the same settings.
    pub(super) fn tonic_grpc<S>(&self, inner: S) -> vocabulary::client::Grpc<S> {
        let mut grpc = vocabulary::client::Grpc::with_origin(inner, self.origin.clone());
        if let Some(encoding) = self.sends {
            grpc = grpc.send_compressed(encoding);
        }
        let mut accepts = self.accepts;
        while let Some(encoding) = accepts.pop() {
            grpc = grpc.accept_compressed(encoding);
        }
        if let Some(limit) = self.max_decoding_message_size {
            grpc = grpc.max_decoding_message_size(limit);
        }
        if let Some(limit) = self.max_encoding_message_size {
            grpc = grpc.max_encoding_message_size(limit);
        }
        grpc
    }

    /// Returns the URI of a call's request.
    pub(super) fn uri(&self, path: PathAndQuery) -> Result<Uri, Status> {
        let mut parts = self.origin.clone().into_parts();
        parts.path_and_query = match parts.path_and_query {
            Some(before) if before != "/" => {
                let joined = format!("{}{path}", before.path()).parse();
                Some(joined.map_err(|error| Status::internal(format!("invalid path of the call: {error}")))?)
            }
            _ => Some(path),
        };
        Uri::from_parts(parts).map_err(|error| Status::internal(format!("invalid URI of the call: {error}")))
    }
}
