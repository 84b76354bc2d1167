//! What a handshake has come to, as an application sees it.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{CommonState, HandshakeKind, ProtocolVersion};

use super::handshake::ALPN_HTTP1;

/// What a TLS connection was agreed on, and who is at its other end.
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

    /// `TLSv1.3` or `TLSv1.2`.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// The cipher suite's name, such as `TLS13_AES_128_GCM_SHA256`.
    pub fn cipher_suite(&self) -> &'static str {
        self.cipher_suite
    }

    /// The key exchange group's name, such as `X25519MLKEM768`; empty where a session of TLS 1.2 was resumed.
    pub fn key_exchange(&self) -> &'static str {
        self.key_exchange
    }

    /// What was agreed on by ALPN (RFC 7301): `h2`, or `http/1.1` with servers that take it.
    pub fn alpn_protocol(&self) -> Option<&'static str> {
        self.alpn_protocol
    }

    /// The host that the client asked for (SNI, RFC 6066 §3); none where it connected to an IP address.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The peer's certificate and, behind it, the chain that it sent, in DER: verified. None where the peer showed
    /// none.
    pub fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.peer_certificates.as_deref()
    }

    /// Whether a former session was resumed: its certificates count, and were verified then.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}
