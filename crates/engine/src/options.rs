//! Options of a client's calls and of a service's methods.

use std::hash::{BuildHasher, BuildHasherDefault, Hash};
use std::time::Duration;

use thalweg_balance::retry::RetryPolicy;
use thalweg_balance::service_config::{AttemptPolicy, MethodConfig};

use crate::call_peer::CallPeer;
use crate::fnv::Fnv1a;
use crate::grpc::compression::{Encoding, EncodingSet};
use crate::grpc::metadata::SENT_SIZE_MAX;

/// Default maximum size of a received message, 4 MiB, as in every gRPC implementation.
pub const MAX_DECODING_MESSAGE_SIZE: usize = 4 * 1024 * 1024;

/// Default minimum size of messages to compress, in bytes. Smaller ones mostly fit one packet with their headers, and
/// compression rarely makes them smaller.
pub const COMPRESSION_THRESHOLD: usize = 1024;

/// Options of a client's calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallOptions {
    /// Maximum size of a received message after decompression, in bytes; 4 MiB by default.
    pub max_decoding_message_size: usize,
    /// Maximum size of a sent message in bytes; unlimited by default.
    pub max_encoding_message_size: usize,
    /// Maximum size of the metadata that a call sends, in bytes as counted by RFC 9113 §10.5.1; 16 KiB by default,
    /// which most servers accept. A call with more ends with RESOURCE_EXHAUSTED. A server's own limit applies, too.
    pub max_sent_metadata_size: usize,
    /// Compression of sent messages; none by default. A server that does not support the encoding ends the call with
    /// UNIMPLEMENTED and lists those it supports.
    pub send_compressed: Option<Encoding>,
    /// Minimum size of messages to compress, in bytes; [`COMPRESSION_THRESHOLD`] by default. Messages that compression
    /// would not shrink are sent uncompressed. With 0 all messages are compressed, even if they grow.
    pub compression_threshold: usize,
    /// Encodings accepted in responses; all supported ones by default.
    pub accept_compressed: EncodingSet,
    /// Whether calls wait while the server is unreachable, instead of failing with UNAVAILABLE. `None`, the default, is
    /// the `waitForReady` of the channel's service config, or else false. `Some(false)` overrides the config.
    pub wait_for_ready: Option<bool>,
    /// Timeout of calls that set none of their own (`Request::set_timeout`); none by default.
    pub timeout: Option<Duration>,
    /// Retries or hedged attempts of calls that fail (gRFC A6); by default those of the channel's service config. See
    /// [`retry`](Self::retry).
    pub attempts: Option<AttemptPolicy>,
    /// Whether the retry or hedging policy of the channel's service config applies; true by default.
    pub retries: bool,
    /// Maximum bytes of sent messages that a streaming call keeps for retries and hedging by policy, in place of
    /// [`ChannelConfig::call_retry_buffer_size`](crate::ChannelConfig::call_retry_buffer_size); none by default.
    pub retry_buffer_size: Option<usize>,
    /// Calls with equal keys use the same lane while it accepts calls; none by default. See
    /// [`affinity_key`](Self::affinity_key).
    pub affinity: Option<u64>,
    /// Receives the server that a call is sent to; none by default. See [`peer`](Self::peer).
    pub peer: Option<CallPeer>,
    /// The timeout of the method in the channel's service config.
    pub(crate) timeout_max: Option<Duration>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            max_decoding_message_size: MAX_DECODING_MESSAGE_SIZE,
            max_encoding_message_size: usize::MAX,
            max_sent_metadata_size: SENT_SIZE_MAX,
            send_compressed: None,
            compression_threshold: COMPRESSION_THRESHOLD,
            accept_compressed: EncodingSet::ALL,
            wait_for_ready: None,
            timeout: None,
            attempts: None,
            retries: true,
            retry_buffer_size: None,
            affinity: None,
            peer: None,
            timeout_max: None,
        }
    }
}

impl CallOptions {
    /// Sets the retry policy, in place of the channel's service config.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.attempts = Some(AttemptPolicy::Retry(policy));
        self
    }

    /// Turns off retries and hedging by the channel's service config. Transparent retries remain (gRFC A6).
    pub fn without_retries(mut self) -> Self {
        (self.attempts, self.retries) = (None, false);
        self
    }

    /// Returns the timeout of a call whose request sets `own`, limited by that of the method in the service config. For
    /// API layers with a protocol of their own.
    #[doc(hidden)]
    #[inline]
    pub fn timeout_of(&self, own: Option<Duration>) -> Option<Duration> {
        let timeout = own.or(self.timeout);
        match self.timeout_max {
            None => timeout,
            Some(max) => Some(timeout.map_or(max, |timeout| timeout.min(max))),
        }
    }

    /// Returns whether calls wait for a connection.
    pub(crate) fn waits_for_ready(&self) -> bool {
        self.wait_for_ready.unwrap_or(false)
    }

    /// Notes in `peer` to which server calls are sent. Use it for one call at a time.
    pub fn peer(mut self, peer: &CallPeer) -> Self {
        self.peer = Some(peer.clone());
        self
    }

    /// Applies the settings of a method in the channel's service config: the lower timeout and limits, and what these
    /// options leave open.
    pub(crate) fn with_method_config(&self, config: &MethodConfig) -> Self {
        let mut options = self.clone();
        options.wait_for_ready = options.wait_for_ready.or(config.wait_for_ready);
        options.timeout_max = config.timeout;
        let limit = |size_max: &mut usize, limit: Option<usize>| {
            *size_max = (*size_max).min(limit.unwrap_or(usize::MAX));
        };
        limit(&mut options.max_encoding_message_size, config.max_request_message_bytes);
        limit(&mut options.max_decoding_message_size, config.max_response_message_bytes);
        if options.retries {
            options.attempts = options.attempts.or_else(|| config.attempts.clone());
        }
        options
    }

    /// Keeps calls with equal keys on one lane, and so on one connection, for example because the server behind it has
    /// cached their data. Adding or removing a lane remaps few keys (rendezvous hashing).
    ///
    /// It is a preference: a call whose lane has no free stream uses another. It does not order calls, not even on one
    /// connection; send messages that must stay in order on one stream.
    pub fn affinity_key(mut self, key: impl Hash) -> Self {
        self.affinity = Some(BuildHasherDefault::<Fnv1a>::default().hash_one(key));
        self
    }
}

/// Options of a service's methods.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServiceOptions {
    /// Like [`CallOptions::max_decoding_message_size`]; 4 MiB by default.
    pub max_decoding_message_size: usize,
    /// Like [`CallOptions::max_encoding_message_size`]; unlimited by default.
    pub max_encoding_message_size: usize,
    /// Compression of responses to clients that accept it. By default the server's setting applies, which is none
    /// unless set. [`Encoding::Identity`] turns compression off for these methods.
    pub send_compressed: Option<Encoding>,
    /// Like [`CallOptions::compression_threshold`].
    pub compression_threshold: usize,
    /// Encodings accepted in requests; all supported ones by default.
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
