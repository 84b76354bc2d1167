//! The certificate that the server creates at its first start, for development.

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

/// Names that every certificate includes.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const VALID_DAYS: u32 = 3650;

/// Loads the identity in `folder`, or creates it. Clients trust it through `ca.pem` in the same folder.
pub(crate) fn identity(folder: &Path, more_names: &[String]) -> Result<Identity, Box<dyn Error>> {
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    if !certificate.exists() || !key.exists() {
        let names = NAMES.iter().map(ToString::to_string).chain(more_names.iter().cloned()).collect();
        let made = make(names).map_err(|error| format!("no certificate for {more_names:?}: {error}"))?;
        // The certificate is written last, so that the next start repeats an interrupted run.
        write(&folder.join("ca.pem"), &made.authority, 0o644)?;
        write(&key, &made.key, 0o600)?;
        write(&certificate, &made.certificate, 0o644)?;
        println!("made a certificate; clients trust {}", folder.join("ca.pem").display());
    }
    Ok(Identity::from_files(certificate, key))
}

/// In PEM format.
struct Made {
    authority: String,
    certificate: String,
    key: String,
}

/// Creates the identity. The authority's key is discarded, so it cannot issue further certificates.
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

/// Creates parameters of a certificate that is valid from a day ago, to tolerate slow clocks.
fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now();
    params.not_before = (now - DAY).into();
    params.not_after = (now + VALID_DAYS * DAY).into();
    params
}

/// Encodes as PEM, with lines of 64 characters (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let digits = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> =
        (0..digits.len()).step_by(64).map(|at| &digits[at..digits.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Writes a file that is created with its final mode, so that a key is never readable by others.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let written = match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).mode(mode).open(path),
    };
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("failed to write {}: {error}", path.display()))
}
