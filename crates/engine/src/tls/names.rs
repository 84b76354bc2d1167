//! Which certificate a client is shown: by the host that it asks for (SNI, RFC 6066 §3).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::{DnsName, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::error::TlsError;
use super::identity::{Changes, Identity, Pair};

/// What a server shows: of each name an identity, and one for all else.
#[derive(Clone, Debug, Default)]
pub(super) struct Identities {
    pub(super) default: Option<Identity>,
    /// By DNS name in lower case, or `*.` and one.
    pub(super) by_name: BTreeMap<String, Identity>,
}

/// The same, read.
#[derive(PartialEq)]
pub(super) struct Pairs {
    default: Option<Pair>,
    by_name: BTreeMap<String, Pair>,
}

/// The same, ready to be shown.
#[derive(Debug)]
pub(super) struct Certificates {
    default: Option<Arc<CertifiedKey>>,
    by_name: HashMap<String, Arc<CertifiedKey>>,
}

/// In place of the first label: any one label (RFC 6125 §6.4.3).
const ANY_LABEL: &str = "*.";

impl Identities {
    pub(super) fn read(&self) -> Result<Pairs, TlsError> {
        if self.default.is_none() && self.by_name.is_empty() {
            return Err(TlsError::NoIdentity);
        }
        let by_name = self.by_name.iter().map(|(name, identity)| Ok((name.clone(), identity.read()?)));
        Ok(Pairs {
            default: self.default.as_ref().map(Identity::read).transpose()?,
            by_name: by_name.collect::<Result<_, TlsError>>()?,
        })
    }

    /// Versions only grow, so that their sum is another when one of them is.
    pub(super) fn may_change(&self) -> Changes {
        self.default.iter().chain(self.by_name.values()).map(Identity::may_change).fold(
            Changes::default(),
            |all, one| Changes {
                has_files: all.has_files || one.has_files,
                version: all.version + one.version,
            },
        )
    }
}

impl Pairs {
    pub(super) fn certificates(&self) -> Result<Certificates, TlsError> {
        let named = |(name, pair): (&String, &Pair)| Ok((name.clone(), Arc::new(pair.certified_for(name)?)));
        Ok(Certificates {
            default: self.default.as_ref().map(Pair::certified_key).transpose()?.map(Arc::new),
            by_name: self.by_name.iter().map(named).collect::<Result<_, TlsError>>()?,
        })
    }
}

impl Pair {
    /// A client that asks for `name` would not believe another's certificate.
    fn certified_for(&self, name: &str) -> Result<CertifiedKey, TlsError> {
        let example = match name.strip_prefix(ANY_LABEL) {
            Some(parent) => format!("any.{parent}"),
            None => name.to_owned(),
        };
        let dns_name =
            DnsName::try_from(example).map_err(|_| TlsError::ServerName { name: name.to_owned() })?;
        let key = self.certified_key()?;
        let is_for_it = key
            .end_entity_cert()
            .and_then(ParsedCertificate::try_from)
            .and_then(|certificate| verify_server_name(&certificate, &ServerName::DnsName(dns_name)));
        let place = self.place.clone();
        is_for_it.map_err(|_| TlsError::OtherName { place, name: name.to_owned() })?;
        Ok(key)
    }
}

impl Certificates {
    /// For the name itself, else for all names beside it, else for whoever comes.
    fn of(&self, name: Option<&str>) -> Option<&Arc<CertifiedKey>> {
        let of_name = |name: &str| {
            self.by_name.get(name).or_else(|| {
                let (_, parent) = name.split_once('.')?;
                self.by_name.get(&format!("{ANY_LABEL}{parent}"))
            })
        };
        name.and_then(of_name).or(self.default.as_ref())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // rustls tells names in lower case.
        self.of(hello.server_name()).cloned()
    }
}
