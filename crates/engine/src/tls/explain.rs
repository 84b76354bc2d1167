//! Explanations of rustls errors, with advice.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// Returns the text of rustls, followed by advice.
pub(super) fn explain(error: &Error) -> String {
    let hint = match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "no trusted authority issued the peer's certificate; add the CA that did, or have the peer send its \
                 whole chain"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "use a name that is in the certificate, or set the name to verify"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "renew the peer's certificate"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "check the clock of this machine"
            }
            _ => "",
        },
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => "the peer requires a certificate; set a TLS identity",
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                "the peer does not trust the authority that issued this side's certificate"
            }
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied => "the peer rejected this side's certificate",
            AlertDescription::UnrecognisedName => "the peer has no certificate for the requested name",
            AlertDescription::ProtocolVersion => "the peer supports neither TLS 1.2 nor 1.3",
            AlertDescription::HandshakeFailure => {
                "no cipher suite or key exchange in common, or the peer requires a certificate"
            }
            _ => "",
        },
        Error::NoCertificatesPresented => "set a TLS identity on the client",
        Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => {
            "HTTP/2 needs ECDHE with AES-GCM or ChaCha20-Poly1305"
        }
        Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered | PeerIncompatible::Tls12NotOfferedOrEnabled,
        ) => "use TLS 1.2 or 1.3",
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => "the peer does not speak TLS",
        _ => "",
    };
    match (error, hint) {
        (error, "") => error.to_string(),
        (error, hint) => format!("{error} ({hint})"),
    }
}
