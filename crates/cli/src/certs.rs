//! `thalweg certs`: a CA and certificates for development and tests.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use thalweg::tls::CertificateDer;
use thalweg_measure::replacement::Replacement;

use crate::failure::Failure;
use crate::terminal::{self, Syntax};

const EXAMPLES: &str = "\
Examples:
  thalweg certs --out certs
  thalweg certs --out certs greeter.internal 10.0.0.7
  thalweg serve --cert certs/server.pem --key certs/server.key
  thalweg load localhost:50051 --cacert certs/ca.pem";

/// Default names in a server certificate.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Generate development certificates: CA, server and client
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CertsArgs {
    /// DNS names and IP addresses of the server [default: localhost 127.0.0.1 ::1]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Output folder, created if missing
    ///
    /// It gets ca.pem, ca.key, server.pem, server.key, client.pem and client.key.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Validity in days
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,

    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

/// A certificate and its private key (PKCS #8), in DER.
pub(crate) struct Issued {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: Vec<u8>,
}

pub(crate) fn run(args: &CertsArgs) -> Result<ExitCode, Failure> {
    let names = if args.names.is_empty() { NAMES.map(str::to_owned).to_vec() } else { args.names.clone() };
    let made = make(names, args.days).map_err(|error| {
        Failure::bad_arguments(format!(
            "failed to create certificates for {}: {error}",
            args.names.join(", ")
        ))
    })?;
    let failed = |path: &Path, error: &io::Error| {
        let hint =
            if error.kind() == io::ErrorKind::AlreadyExists { "; use --force to overwrite it" } else { "" };
        Failure::failed(format!("failed to write {}: {error}{hint}", path.display()))
    };
    fs::create_dir_all(&args.out).map_err(|error| failed(&args.out, &error))?;
    let files = made.iter().flat_map(|(name, issued)| {
        [
            (format!("{name}.pem"), pem("CERTIFICATE", &issued.certificate), 0o644),
            (format!("{name}.key"), pem("PRIVATE KEY", &issued.key), 0o600),
        ]
    });
    let files: Vec<_> = files.map(|(name, text, mode)| (args.out.join(name), text, mode)).collect();
    if !args.force
        && let Some((path, ..)) = files.iter().find(|(path, ..)| path.exists())
    {
        return Err(failed(path, &io::ErrorKind::AlreadyExists.into()));
    }
    let mut paths = Vec::new();
    for (path, text, mode) in &files {
        write(path, text, *mode).map_err(|error| failed(path, &error))?;
        paths.push(path.display().to_string());
    }
    terminal::print(Syntax::Text, &(paths.join("\n") + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a file whose mode is set from creation, so that a key is never readable by others.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = Replacement::with_mode(path, mode)?;
    file.write_all(text.as_bytes())?;
    file.commit()
}

/// Returns a certificate for servers that are given none.
pub(crate) fn self_signed() -> Result<Issued, rcgen::Error> {
    let mut params = params("thalweg, for one run", 365, ExtendedKeyUsagePurpose::ServerAuth);
    params.subject_alt_names = CertificateParams::new(NAMES.map(str::to_owned))?.subject_alt_names;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Issued { certificate: certificate.der().clone(), key: key.serialize_der() })
}

fn make(names: Vec<String>, days: u32) -> Result<[(&'static str, Issued); 3], rcgen::Error> {
    let mut of_authority = params("thalweg development authority", days, ExtendedKeyUsagePurpose::Any);
    of_authority.extended_key_usages.clear();
    of_authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    of_authority.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let authority = CertifiedIssuer::self_signed(of_authority, KeyPair::generate()?)?;

    let mut of_server =
        params(names.first().map_or("server", String::as_str), days, ExtendedKeyUsagePurpose::ServerAuth);
    of_server.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    let mut of_client = params("client", days, ExtendedKeyUsagePurpose::ClientAuth);
    of_client.subject_alt_names = CertificateParams::new(vec!["client".to_owned()])?.subject_alt_names;
    let server = issue(&of_server, &authority)?;
    let client = issue(&of_client, &authority)?;
    let key = authority.key().serialize_der();
    let authority = Issued { certificate: authority.der().clone(), key };
    Ok([("ca", authority), ("server", server), ("client", client)])
}

fn issue(params: &CertificateParams, authority: &Issuer<'_, KeyPair>) -> Result<Issued, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Issued { certificate: certificate.der().clone(), key: key.serialize_der() })
}

/// Returns parameters valid from one hour ago, to tolerate clocks that are behind.
fn params(name: &str, days: u32, usage: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![usage];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    let now = SystemTime::now();
    params.not_before = (now - HOUR).into();
    params.not_after = (now + 24 * HOUR * days).into();
    params
}

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

/// Encodes PEM (RFC 7468) with 64 characters a line.
fn pem(label: &str, der: &[u8]) -> String {
    let digits = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> =
        (0..digits.len()).step_by(64).map(|at| &digits[at..digits.len().min(at + 64)]).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
