//! Certificates and keys from PEM (RFC 7468), and the errors for invalid input.

use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;

/// Returns all certificates in `pem`, at least one. `place` names the source in errors.
pub(super) fn certificates(pem: &[u8], place: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let mut certificates = Vec::new();
    let mut others = Vec::new();
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
        match section.map_err(|error| malformed(place, &error))? {
            (SectionKind::Certificate, der) => certificates.push(CertificateDer::from(der)),
            (kind, _) => others.push(kind),
        }
    }
    if certificates.is_empty() {
        let found = if others.iter().any(|kind| is_key(*kind)) {
            "a private key and no certificate; check that the two are not swapped"
        } else {
            "no certificate, which starts with `-----BEGIN CERTIFICATE-----`"
        };
        return Err(TlsError::Pem { place: place.to_owned(), reason: format!("it has {found}") });
    }
    Ok(certificates)
}

/// Returns the first private key in `pem`: PKCS #8, PKCS #1 or SEC 1.
pub(super) fn private_key(pem: &[u8], place: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    let mut has_certificate = false;
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
        let (kind, der) = section.map_err(|error| malformed(place, &error))?;
        if let Some(key) = PrivateKeyDer::from_pem(kind, der) {
            return Ok(key);
        }
        has_certificate |= kind == SectionKind::Certificate;
    }
    let is_encrypted = pem.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED);
    let found = if is_encrypted {
        "an encrypted private key; decrypt it first, for example with `openssl pkey -in KEY -out PLAIN_KEY`"
    } else if has_certificate {
        "a certificate and no private key; check that the two are not swapped"
    } else {
        "no private key, which starts with `-----BEGIN PRIVATE KEY-----`"
    };
    Err(TlsError::Pem { place: place.to_owned(), reason: format!("it has {found}") })
}

const ENCRYPTED: &[u8] = b"BEGIN ENCRYPTED PRIVATE KEY";

fn is_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}

fn malformed(place: &str, error: &rustls::pki_types::pem::Error) -> TlsError {
    TlsError::Pem { place: place.to_owned(), reason: format!("invalid PEM: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    const EC_KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
    const ENCRYPTED_KEY: &str =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";

    #[test]
    fn invalid_certificate_is_named() {
        let check = |pem: &str, expected: Result<usize, &str>| match (
            certificates(pem.as_bytes(), "ca.pem"),
            expected,
        ) {
            (Ok(found), Ok(count)) => assert_eq!(found.len(), count, "{pem}"),
            (Err(error), Err(part)) => {
                let text = error.to_string();
                assert!(text.contains(part) && text.contains("ca.pem"), "{pem}: {text}");
            }
            (found, expected) => panic!("{pem}: {found:?}, not {expected:?}"),
        };
        check(CERTIFICATE, Ok(1));
        check(&format!("a comment\n{CERTIFICATE}{KEY}{CERTIFICATE}"), Ok(2));
        check("", Err("no certificate"));
        check("hello", Err("no certificate"));
        check(KEY, Err("swapped"));
        check("-----BEGIN CERTIFICATE-----\nAAAA\n", Err("invalid PEM"));
        check("-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n", Err("invalid PEM"));
    }

    #[test]
    fn invalid_key_is_named() {
        let check = |pem: &str, expected: Result<(), &str>| match (
            private_key(pem.as_bytes(), "key.pem"),
            expected,
        ) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(part)) => {
                let text = error.to_string();
                assert!(text.contains(part) && text.contains("key.pem"), "{pem}: {text}");
            }
            (found, expected) => panic!("{pem}: {:?}, not {expected:?}", found.map(|_| ())),
        };
        check(KEY, Ok(()));
        check(EC_KEY, Ok(()));
        check(&format!("{CERTIFICATE}{KEY}"), Ok(()));
        check("", Err("no private key"));
        check(CERTIFICATE, Err("swapped"));
        check(ENCRYPTED_KEY, Err("decrypt it first"));
    }
}
