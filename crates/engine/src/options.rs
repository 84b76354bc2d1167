//! What can be set for the calls of a client, and for the methods of a service.

use std::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::time::Duration;

use crate::fnv::Fnv1a;
use crate::grpc::compression::{Encoding, EncodingSet};

/// Bytes of the largest message that is accepted unless said otherwise, as in every gRPC implementation.
pub const MAX_DECODING_MESSAGE_SIZE: usize = 4 * 1024 * 1024;

/// Smallest message that is compressed by default: 1,024 bytes. A smaller one mostly fits one packet with its headers,
/// and compression rarely makes it smaller.
pub const COMPRESSION_THRESHOLD: usize = 1024;

/// Options of a client's calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallOptions {
    /// Bytes of the largest message accepted, after decompression; 4 MiB by default.
    pub max_decoding_message_size: usize,
    /// Bytes of the largest message sent; unlimited by default.
    pub max_encoding_message_size: usize,
    /// How messages are compressed; not at all by default. A server that does not know the encoding ends the call with
    /// UNIMPLEMENTED, and names those it knows.
    pub send_compressed: Option<Encoding>,
    /// Messages of fewer bytes are sent as they are, and so are those that would become no smaller;
    /// [`COMPRESSION_THRESHOLD`] by default. With 0 all are compressed, whatever becomes of them.
    pub compression_threshold: usize,
    /// How the server is told that it may compress: in all ways that this library knows.
    pub accept_compressed: EncodingSet,
    /// Whether a call waits for a connection that can't be made at the moment, rather than failing with UNAVAILABLE.
    pub wait_for_ready: bool,
    /// The deadline of calls that set none of their own (`Request::set_timeout`).
    pub timeout: Option<Duration>,
    /// Calls with an equal one take the same lane while that takes calls; see
    /// [`affinity_key`](Self::affinity_key).
    pub affinity: Option<u64>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            max_decoding_message_size: MAX_DECODING_MESSAGE_SIZE,
            max_encoding_message_size: usize::MAX,
            send_compressed: None,
            compression_threshold: COMPRESSION_THRESHOLD,
            accept_compressed: EncodingSet::ALL,
            wait_for_ready: false,
            timeout: None,
            affinity: None,
        }
    }
}

impl CallOptions {
    /// Keeps calls with equal keys on one lane, and so on one connection, for example because the server behind it has
    /// their data cached. Adding or removing a lane remaps few keys (rendezvous hashing).
    ///
    /// It is a preference: a call whose lane has no free stream takes another lane. It makes no order, which calls on
    /// one connection do not have either: send messages that must stay in order on one stream.
    pub fn affinity_key(mut self, key: impl Hash) -> Self {
        self.affinity = Some(BuildHasherDefault::<Fnv1a>::default().hash_one(key));
        self
    }
}

/// Options of a service's methods.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// As [`CallOptions::max_decoding_message_size`]; 4 MiB by default.
    pub max_decoding_message_size: usize,
    /// As [`CallOptions::max_encoding_message_size`]; unlimited by default.
    pub max_encoding_message_size: usize,
    /// How responses are compressed for clients that accept it: as the server compresses by default, which is not at
    /// all unless that is said for it. [`Encoding::Identity`] turns it off for these methods.
    pub send_compressed: Option<Encoding>,
    /// As [`CallOptions::compression_threshold`].
    pub compression_threshold: usize,
    /// The compression that requests may have: all that this library knows.
    pub accept_compressed: EncodingSet,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self {
            max_decoding_message_size: MAX_DECODING_MESSAGE_SIZE,
            max_encoding_message_size: usize::MAX,
            send_compressed: None,
            compression_threshold: COMPRESSION_THRESHOLD,
            accept_compressed: EncodingSet::ALL,
        }
    }
}
