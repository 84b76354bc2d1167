//! The certificate that the server makes for itself at its first start, for development.

use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use thalweg::tls::Identity;

/// The names that it is for without others.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const VALID_DAYS: u32 = 3650;

/// The identity in `folder`, made if there is none. Clients trust it by `ca.pem`, which lies beside it.
pub(crate) fn identity(folder: &Path, more_names: &[String]) -> Result<Identity, Box<dyn Error>> {
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    if !certificate.exists() || !key.exists() {
        let names = NAMES.iter().map(ToString::to_string).chain(more_names.iter().cloned()).collect();
        let made = make(names).map_err(|error| format!("no certificate for {more_names:?}: {error}"))?;
        // The certificate last: what is cut short is made anew by the next start.
        write(&folder.join("ca.pem"), &made.authority, 0o644)?;
        write(&key, &made.key, 0o600)?;
        write(&certificate, &made.certificate, 0o644)?;
        println!("made a certificate; clients trust {}", folder.join("ca.pem").display());
    }
    Ok(Identity::from_files(certificate, key))
}

/// In PEM.
struct Made {
    authority: String,
    certificate: String,
    key: String,
}

/// The authority's key is not kept: nobody issues anything more that these clients trust.
fn make(names: Vec<String>) -> Result<Made, rcgen::Error> {
    let mut of_authority = params("chat development authority");
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    of_authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority = of_authority.self_signed(&authority_key)?;

    let mut of_server = params("chat-server");
    of_server.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    of_server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    of_server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    of_server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = of_server.signed_by(&key, &Issuer::from_params(&of_authority, &authority_key))?;
    Ok(Made {
        authority: pem("CERTIFICATE", authority.der()),
        certificate: pem("CERTIFICATE", certificate.der()),
        key: pem("PRIVATE KEY", &key.serialize_der()),
    })
}

/// Valid from a day ago, for clocks that are late.
fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    params.not_before = (now - DAY).into();
    params.not_after = (now + VALID_DAYS * DAY).into();
    params
}

/// RFC 7468: lines of 64 digits.
fn pem(label: &str, der: &[u8]) -> String {
    let digits = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> =
        (0..digits.len()).step_by(64).map(|at| &digits[at..digits.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Nobody but its owner reads a key, not for a moment.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let written = match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).mode(mode).open(path),
    };
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
