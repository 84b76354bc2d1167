//! Trusted authorities, as rustls root stores.

use std::sync::{Arc, OnceLock};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::error::TlsError;

/// Adds the authorities named by an application.
pub(super) fn add(
    roots: &mut RootCertStore,
    place: &str,
    certificates: &[CertificateDer<'static>],
) -> Result<(), TlsError> {
    for (index, certificate) in certificates.iter().enumerate() {
        roots.add(certificate.clone()).map_err(|source| TlsError::Authority {
            place: place.to_owned(),
            number: index + 1,
            source,
        })?;
    }
    Ok(())
}

/// Returns the platform's authorities, read once in a process. Ignores those that rustls can't use, as all TLS clients
/// do.
pub(super) fn platform() -> Result<Arc<RootCertStore>, TlsError> {
    static PLATFORM: OnceLock<(Arc<RootCertStore>, String)> = OnceLock::new();
    let (roots, problems) = PLATFORM.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(found.certs);
        let problems: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        (Arc::new(roots), problems.join("; "))
    });
    if roots.is_empty() {
        let reason = if problems.is_empty() { "none found" } else { problems };
        return Err(TlsError::NoRoots { reason: reason.to_owned() });
    }
    Ok(Arc::clone(roots))
}
