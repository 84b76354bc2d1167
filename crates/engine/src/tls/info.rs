//! Result of a handshake, for applications.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{CommonState, HandshakeKind, ProtocolVersion};

use super::handshake::ALPN_HTTP1;

/// Parameters of a TLS session, and the peer's identity.
#[derive(Clone, Debug)]
pub struct TlsInfo {
    version: &'static str,
    cipher_suite: &'static str,
    key_exchange: &'static str,
    alpn_protocol: Option<&'static str>,
    server_name: Option<Box<str>>,
    peer_certificates: Option<Arc<[CertificateDer<'static>]>>,
    is_resumed: bool,
}

impl TlsInfo {
    pub(super) fn new(session: &CommonState, server_name: Option<Box<str>>) -> Self {
        let suite = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        let group = session.negotiated_key_exchange_group().and_then(|group| group.name().as_str());
        Self {
            version: match session.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                _ => "",
            },
            cipher_suite: suite.unwrap_or(""),
            key_exchange: group.unwrap_or(""),
            alpn_protocol: session
                .alpn_protocol()
                .map(|name| if name == ALPN_HTTP1 { "http/1.1" } else { "h2" }),
            server_name,
            peer_certificates: session.peer_certificates().map(Into::into),
            is_resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Returns `TLSv1.3` or `TLSv1.2`.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Returns the name of the cipher suite, such as `TLS13_AES_128_GCM_SHA256`.
    pub fn cipher_suite(&self) -> &'static str {
        self.cipher_suite
    }

    /// Returns the name of the key exchange group, such as `X25519MLKEM768`; empty for a resumed TLS 1.2 session.
    pub fn key_exchange(&self) -> &'static str {
        self.key_exchange
    }

    /// Returns the protocol negotiated by ALPN (RFC 7301): `h2`, or `http/1.1` with servers that accept it.
    pub fn alpn_protocol(&self) -> Option<&'static str> {
        self.alpn_protocol
    }

    /// Returns the host that the client asked for (SNI, RFC 6066 §3); `None` if it connected to an IP address.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Returns the peer's verified certificate, followed by the chain that it sent, in DER. `None` if it sent none.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.peer_certificates.as_deref()
    }

    /// Returns whether an earlier session was resumed. Its certificates apply, and were verified then.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}
