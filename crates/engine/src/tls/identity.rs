//! Identities and trusted authorities.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::error::TlsError;
use super::pem;
use super::provider::provider;

/// A certificate chain and its private key, presented by a server, or by a client on request.
///
/// It is read and checked when TLS is set up with it, which reports errors.
#[derive(Clone)]
pub struct Identity(Origin);

#[derive(Clone)]
enum Origin {
    Pem { chain: Arc<[u8]>, key: Arc<[u8]> },
    Files { chain: Arc<Path>, key: Arc<Path> },
    Der(Arc<Pair>),
    Live(LiveIdentity),
}

/// A parsed chain, and the key of its first certificate.
#[derive(PartialEq)]
pub(super) struct Pair {
    pub(super) place: String,
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Creates an identity from PEM: the certificate, followed by those that lead to its authority, and the
    /// unencrypted private key (PKCS #8, PKCS #1 or SEC 1).
    pub fn from_pem(chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        Self(Origin::Pem { chain: chain.as_ref().into(), key: key.as_ref().into() })
    }

    /// Creates an identity from two PEM files, like [`from_pem`](Self::from_pem). They are re-read from time to time
    /// when a connection starts, so a renewed certificate needs no restart. While they can't be read or don't match,
    /// the previous ones stay in use and a warning is logged.
    pub fn from_files(chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self(Origin::Files { chain: chain.into().into(), key: key.into().into() })
    }

    /// Creates an identity from DER. The certificate comes first in `chain`.
    pub fn from_der(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        let place = "the identity (DER)".to_owned();
        Self(Origin::Der(Arc::new(Pair { place, chain, key })))
    }

    pub(super) fn read(&self) -> Result<Pair, TlsError> {
        match &self.0 {
            Origin::Pem { chain, key } => Ok(Pair {
                place: "the identity (PEM)".to_owned(),
                chain: pem::certificates(chain, "the identity's certificate (PEM)")?,
                key: pem::private_key(key, "the identity's private key (PEM)")?,
            }),
            Origin::Files { chain, key } => Ok(Pair {
                place: format!("{} and {}", chain.display(), key.display()),
                chain: pem::certificates(&read("the certificate", chain)?, &chain.display().to_string())?,
                key: pem::private_key(&read("the private key", key)?, &key.display().to_string())?,
            }),
            Origin::Der(pair) => {
                Ok(Pair { place: pair.place.clone(), chain: pair.chain.clone(), key: pair.key.clone_key() })
            }
            Origin::Live(live) => live.current().read(),
        }
    }

    /// Returns whether the identity may change.
    pub(super) fn may_change(&self) -> Changes {
        match &self.0 {
            Origin::Pem { .. } | Origin::Der(_) => Changes::default(),
            Origin::Files { .. } => Changes { has_files: true, version: 0 },
            Origin::Live(live) => {
                let state = live.state();
                let of_current = state.0.may_change();
                Changes { version: of_current.version + state.1, ..of_current }
            }
        }
    }
}

/// Shows, without reading files, whether something must be read again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) has_files: bool,
    /// A different number means a different identity.
    pub(super) version: u64,
}

impl Pair {
    /// Converts the pair for rustls, and checks that chain and key match.
    pub(super) fn certified_key(&self) -> Result<CertifiedKey, TlsError> {
        let provider = provider()?;
        CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), &provider).map_err(|source| {
            let place = self.place.clone();
            match source {
                rustls::Error::InconsistentKeys(_) => TlsError::KeyMismatch { place },
                source => TlsError::Identity { place, source },
            }
        })
    }
}

impl fmt::Debug for Identity {
    /// Never prints the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Origin::Pem { .. } => f.write_str("Identity(PEM)"),
            Origin::Der(_) => f.write_str("Identity(DER)"),
            Origin::Files { chain, key } => f.debug_tuple("Identity").field(chain).field(key).finish(),
            Origin::Live(_) => f.write_str("Identity(live)"),
        }
    }
}

/// An identity that an application can replace while it is in use. New connections present the new one.
///
/// ```
/// use thalweg_engine::tls::{Identity, LiveIdentity, ServerTlsConfig};
///
/// # fn example(renewed: Identity) {
/// let identity = LiveIdentity::new(Identity::from_pem("a chain", "a key"));
/// let tls = ServerTlsConfig::new().identity(&identity);
/// // Later, from anywhere:
/// identity.replace(renewed);
/// # }
/// ```
#[derive(Clone)]
pub struct LiveIdentity(Arc<Mutex<(Identity, u64)>>);

impl LiveIdentity {
    /// Creates a live identity that starts with `identity`.
    pub fn new(identity: Identity) -> Self {
        Self(Arc::new(Mutex::new((identity, 0))))
    }

    /// Replaces the identity for new connections. If `identity` can't be used, a warning is logged, and the previous
    /// one stays.
    pub fn replace(&self, identity: Identity) {
        let mut state = self.state();
        // The sum with the new identity's own version must not equal an old sum.
        state.1 += 1 + state.0.may_change().version;
        state.0 = identity;
    }

    fn current(&self) -> Identity {
        self.state().0.clone()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, (Identity, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<&LiveIdentity> for Identity {
    fn from(live: &LiveIdentity) -> Self {
        Self(Origin::Live(live.clone()))
    }
}

impl fmt::Debug for LiveIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveIdentity").field(&self.state().0).finish()
    }
}

/// Certificates of trusted authorities. Peers with a certificate issued by one of them are trusted.
#[derive(Clone, Debug)]
pub struct Certificate(Authority);

#[derive(Clone, Debug)]
enum Authority {
    Pem(Arc<[u8]>),
    Der(CertificateDer<'static>),
    File(Arc<Path>),
}

impl Certificate {
    /// Creates it from PEM with any number of certificates.
    pub fn from_pem(pem: impl AsRef<[u8]>) -> Self {
        Self(Authority::Pem(pem.as_ref().into()))
    }

    /// Creates it from one certificate in DER.
    pub fn from_der(der: impl Into<Vec<u8>>) -> Self {
        Self(Authority::Der(CertificateDer::from(der.into())))
    }

    /// Creates it from a PEM file, which is re-read from time to time, like [`Identity::from_files`].
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self(Authority::File(path.into().into()))
    }

    pub(super) fn has_file(&self) -> bool {
        matches!(self.0, Authority::File(_))
    }

    /// Returns the certificates, and their name in messages.
    pub(super) fn read(&self) -> Result<(String, Vec<CertificateDer<'static>>), TlsError> {
        match &self.0 {
            Authority::Pem(pem) => {
                let place = "the authority's certificate (PEM)";
                Ok((place.to_owned(), pem::certificates(pem, place)?))
            }
            Authority::Der(der) => Ok(("the authority's certificate (DER)".to_owned(), vec![der.clone()])),
            Authority::File(path) => {
                let place = path.display().to_string();
                let certificates = pem::certificates(&read("the authority's certificate", path)?, &place)?;
                Ok((place, certificates))
            }
        }
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::File { what, path: path.to_owned(), source })
}
