//! Certificates for tests, and the authorities that issue them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use thalweg::tls::{Certificate, CertificateDer, Identity, PrivateKeyDer};

static AUTHORITIES: AtomicUsize = AtomicUsize::new(0);

/// A certificate authority for one test.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        // Two authorities with the same name would be considered identical.
        let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self(CertifiedIssuer::self_signed(params, key()).expect("a certificate"))
    }

    pub(crate) fn certificate(&self) -> Certificate {
        Certificate::from_der(self.0.der().to_vec())
    }

    pub(crate) fn certificate_der(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub(crate) fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = key();
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Issued { certificate: certificate.der().clone(), key: key.serialize_der() }
    }

    pub(crate) fn identity(&self, name: &str) -> Identity {
        self.issue(name, |_| ()).identity()
    }
}

pub(crate) struct Issued {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: Vec<u8>,
}

impl Issued {
    pub(crate) fn identity(&self) -> Identity {
        let key = PrivateKeyDer::Pkcs8(self.key.clone().into());
        Identity::from_der(vec![self.certificate.clone()], key)
    }

    pub(crate) fn write(&self, folder: &Path) -> Identity {
        let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
        std::fs::write(&chain, pem("CERTIFICATE", &self.certificate)).expect("a file");
        std::fs::write(&key, pem("PRIVATE KEY", &self.key)).expect("a file");
        Identity::from_files(chain, key)
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    let text: String = der.chunks(48).map(|chunk| base64(chunk) + "\n").collect();
    format!("-----BEGIN {label}-----\n{text}-----END {label}-----\n")
}

/// Encodes at most 48 bytes as Base64 (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) as usize % 64;
            text.push(if digit <= group.len() { DIGITS[value] as char } else { '=' });
        }
    }
    text
}
