//! Choice of a server's certificate by the host that a client asks for (SNI, RFC 6066 §3).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::{DnsName, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use webpki::EndEntityCert;

use super::error::TlsError;
use super::identity::{Changes, Identity, Pair};

/// A server's identities: by name, and a default.
#[derive(Clone, Debug, Default)]
pub(super) struct Identities {
    pub(super) default: Option<Identity>,
    /// Keys are DNS names in lower case, with an optional `*.` in front.
    pub(super) by_name: BTreeMap<String, Identity>,
    /// Identities for the names in their certificates.
    pub(super) by_certificate: Vec<Identity>,
}

/// The identities, after reading.
#[derive(PartialEq)]
pub(super) struct Pairs {
    default: Option<Pair>,
    by_name: BTreeMap<String, Pair>,
    by_certificate: Vec<Pair>,
}

/// The identities, ready for use.
#[derive(Debug)]
pub(super) struct Certificates {
    default: Option<Arc<CertifiedKey>>,
    by_name: HashMap<String, Arc<CertifiedKey>>,
}

/// Prefix that stands for any one label (RFC 6125 §6.4.3).
const ANY_LABEL: &str = "*.";

impl Identities {
    pub(super) fn read(&self) -> Result<Pairs, TlsError> {
        if self.all().next().is_none() {
            return Err(TlsError::NoIdentity);
        }
        let by_name = self.by_name.iter().map(|(name, identity)| Ok((name.clone(), identity.read()?)));
        Ok(Pairs {
            default: self.default.as_ref().map(Identity::read).transpose()?,
            by_name: by_name.collect::<Result<_, TlsError>>()?,
            by_certificate: self.by_certificate.iter().map(Identity::read).collect::<Result<_, _>>()?,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Identity> {
        self.default.iter().chain(self.by_name.values()).chain(&self.by_certificate)
    }

    /// Versions only grow, so their sum changes when one of them does.
    pub(super) fn may_change(&self) -> Changes {
        self.all().map(Identity::may_change).fold(Changes::default(), |all, one| Changes {
            has_files: all.has_files || one.has_files,
            version: all.version + one.version,
        })
    }
}

impl Pairs {
    pub(super) fn certificates(&self) -> Result<Certificates, TlsError> {
        let default = self.default.as_ref().map(Pair::certified_key).transpose()?.map(Arc::new);
        let mut by_name = self.of_certificates(default.as_ref())?;
        for (name, pair) in &self.by_name {
            by_name.insert(name.clone(), Arc::new(pair.certified_for(name)?));
        }
        Ok(Certificates { default, by_name })
    }

    /// Returns the certificates by the names in them. If there are any, the default's own names count, too: another
    /// certificate's `*` might cover them.
    fn of_certificates(
        &self,
        default: Option<&Arc<CertifiedKey>>,
    ) -> Result<HashMap<String, Arc<CertifiedKey>>, TlsError> {
        let (mut by_name, mut places) = (HashMap::new(), HashMap::new());
        if self.by_certificate.is_empty() {
            return Ok(by_name);
        }
        let mut add = |pair: &Pair, key: &Arc<CertifiedKey>, names: BTreeSet<String>| {
            for name in names {
                if let Some(other) = places.insert(name.clone(), pair.place.clone()) {
                    return Err(TlsError::SameName { name, place: other, other: pair.place.clone() });
                }
                by_name.insert(name, Arc::clone(key));
            }
            Ok(())
        };
        if let (Some(pair), Some(key)) = (&self.default, default) {
            add(pair, key, pair.dns_names()?)?;
        }
        for pair in &self.by_certificate {
            let key = Arc::new(pair.certified_key()?);
            let names = pair.dns_names()?;
            if names.is_empty() {
                return Err(TlsError::NoName { place: pair.place.clone() });
            }
            add(pair, &key, names)?;
        }
        Ok(by_name)
    }
}

impl Pair {
    /// Returns the key, if its certificate is valid for `name`. A client would reject any other.
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

    /// Returns the DNS names in the certificate, in lower case.
    fn dns_names(&self) -> Result<BTreeSet<String>, TlsError> {
        let Some(certificate) = self.chain.first() else { return Ok(BTreeSet::new()) };
        let certificate = EndEntityCert::try_from(certificate).map_err(|error| TlsError::Identity {
            place: self.place.clone(),
            source: rustls::Error::General(error.to_string()),
        })?;
        Ok(certificate.valid_dns_names().map(str::to_ascii_lowercase).collect())
    }
}

impl Certificates {
    /// Returns the certificate for the exact name, else for its wildcard, else the default.
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
        // rustls passes names in lower case.
        self.of(hello.server_name()).cloned()
    }
}
