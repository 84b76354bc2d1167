//! Certificates and identities for clients and servers.

use thalweg_engine::tls as engine;

/// Certificates of authorities in PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    pem: Vec<u8>,
}

/// A certificate chain and its private key in PEM.
#[derive(Clone)]
pub struct Identity {
    chain: Certificate,
    key: Vec<u8>,
}

impl Certificate {
    /// Creates a certificate from PEM with one or more certificates. It is validated when TLS is configured with it.
    pub fn from_pem(pem: impl AsRef<[u8]>) -> Self {
        Self { pem: pem.as_ref().to_vec() }
    }

    /// Returns the PEM.
    pub fn get_ref(&self) -> &[u8] {
        &self.pem
    }

    /// Returns the PEM for changes.
    pub fn get_mut(&mut self) -> &mut [u8] {
        &mut self.pem
    }

    /// Returns the PEM.
    pub fn into_inner(self) -> Vec<u8> {
        self.pem
    }

    pub(super) fn to_engine(&self) -> engine::Certificate {
        engine::Certificate::from_pem(&self.pem)
    }
}

impl AsRef<[u8]> for Certificate {
    fn as_ref(&self) -> &[u8] {
        self.get_ref()
    }
}

impl AsMut<[u8]> for Certificate {
    fn as_mut(&mut self) -> &mut [u8] {
        self.get_mut()
    }
}

impl Identity {
    /// Creates an identity from PEM. `cert` is the certificate, followed by the intermediates up to its authority;
    /// `key` is the private key (PKCS #8, PKCS #1 or SEC 1, unencrypted). Both are validated when TLS is configured
    /// with them.
    pub fn from_pem(cert: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        Self { chain: Certificate::from_pem(cert), key: key.as_ref().to_vec() }
    }

    pub(super) fn to_engine(&self) -> engine::Identity {
        engine::Identity::from_pem(&self.chain, &self.key)
    }
}

/// Omits the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("chain", &self.chain).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// A certificate and its key, in PEM.
    pub(in crate::transport) fn pair() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["a.test".to_owned()]).unwrap().self_signed(&key).unwrap();
        let pem = |label: &str, der: &[u8]| {
            format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
        };
        (pem("CERTIFICATE", certificate.der()), pem("PRIVATE KEY", &key.serialize_der()))
    }

    #[test]
    fn certificate_keeps_its_pem() {
        let mut certificate = Certificate::from_pem("PEM");
        assert_eq!((certificate.get_ref(), certificate.as_ref()), (&b"PEM"[..], &b"PEM"[..]));
        certificate.get_mut()[0] = b'p';
        certificate.as_mut()[1] = b'e';
        assert_eq!(certificate.into_inner(), b"peM");
    }

    #[test]
    fn debug_omits_the_key() {
        let identity = Identity::from_pem("", "key");
        assert_eq!(format!("{identity:?}"), "Identity { chain: Certificate { pem: [] }, .. }");
    }
}
