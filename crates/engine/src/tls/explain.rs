//! Explanations of rustls errors, with advice.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// Returns the text of rustls, followed by advice.
pub(super) fn explain(error: &Error) -> String {
    let hint = match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "no authority that is trusted here has issued the peer's certificate; give the certificate of the one \
                 that has, or have the peer send its whole chain"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "connect by a name that the certificate has, or set the name to verify"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the peer has to renew it",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "is the clock of this machine right?"
            }
            _ => "",
        },
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => {
                "the peer wants a certificate of this side: give TLS an identity"
            }
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                "the peer does not trust the authority that issued this side's certificate"
            }
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied => "the peer refuses this side's certificate",
            AlertDescription::UnrecognisedName => {
                "the peer has no certificate for the name that it was asked for"
            }
            AlertDescription::ProtocolVersion => "the peer speaks none of TLS 1.2 and 1.3",
            AlertDescription::HandshakeFailure => {
                "the two sides have no cipher suite or key exchange in common, or the peer wants a certificate"
            }
            _ => "",
        },
        Error::NoCertificatesPresented => "the client has to give its TLS an identity",
        Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => {
            "HTTP/2 needs one of ECDHE with AES-GCM or ChaCha20-Poly1305"
        }
        Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => "TLS 1.2 or 1.3 is needed",
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => "the peer does not speak TLS",
        _ => "",
    };
    match (error, hint) {
        (error, "") => error.to_string(),
        (error, hint) => format!("{error} ({hint})"),
    }
}
