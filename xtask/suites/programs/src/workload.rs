//! `spiffe`, with a stub of the Workload API on a UNIX socket: identities are fetched, and replaced while they are in
//! use.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use spiffe::{TrustDomain, WorkloadApiClient, WorkloadApiError, X509Source};
use tonic::{Request, Response, Status};

use crate::outcome::Outcome;

tonic::include_proto!(".SpiffeWorkloadAPI");

use spiffe_workload_a_p_i_server::{SpiffeWorkloadAPI, SpiffeWorkloadAPIServer};

const DOMAIN: &str = "forest.example";
const NAME: &str = "spiffe://forest.example/oak";
/// Hints of an identity and its successor.
const HINTS: [&str; 2] = ["first", "second"];
/// Time between the two.
const ROTATION: Duration = Duration::from_millis(300);

pub async fn drive(socket: &str) -> Outcome {
    let client = client(socket).await?;
    let identity = client.fetch_x509_svid().await?;
    println!("{} {:?} {}", identity.spiffe_id(), identity.hint(), identity.cert_chain().len());
    let domain = TrustDomain::new(DOMAIN)?;
    let bundles = client.fetch_x509_bundles().await?;
    let bundle = bundles.get(&domain).ok_or("no bundle")?;
    println!("{} bundles, {} authorities", bundles.len(), bundle.authorities().len());

    let source = X509Source::builder().endpoint(endpoint(socket)).build().await?;
    let mut updates = source.updated();
    let former = source.svid()?;
    while source.svid()?.hint() != Some(HINTS[1]) {
        updates.changed().await?;
    }
    let identity = source.svid()?;
    assert_ne!(identity.cert_chain()[0], former.cert_chain()[0], "the certificate was not replaced");
    println!("{} {:?}, then {:?}", identity.spiffe_id(), former.hint(), identity.hint());
    source.shutdown().await;

    match WorkloadApiClient::connect_to(format!("{}.none", endpoint(socket))).await {
        Err(WorkloadApiError::Transport(_)) => Ok(()),
        other => Err(format!("unexpected result of a missing socket: {other:?}").into()),
    }
}

pub async fn client(socket: &str) -> Outcome<WorkloadApiClient> {
    Ok(WorkloadApiClient::connect_to(endpoint(socket)).await?)
}

/// A call for the rates.
pub async fn fetch(client: WorkloadApiClient) -> Outcome {
    client.fetch_x509_bundles().await?;
    Ok(())
}

fn endpoint(socket: &str) -> String {
    format!("unix:{socket}")
}

/// Has the wire format of `X509SVIDRequest` and `X509BundlesRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Empty {}

/// `X509SVIDResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Identities {
    #[prost(message, repeated, tag = "1")]
    identities: Vec<Identity>,
}

/// `X509SVID`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Identity {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(bytes = "bytes", tag = "2")]
    certificate: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    bundle: Bytes,
    #[prost(string, tag = "5")]
    hint: String,
}

/// `X509BundlesResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Bundles {
    #[prost(map = "string, bytes", tag = "2")]
    bundles: HashMap<String, Bytes>,
}

/// A certificate authority, and its certificate.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Bytes,
}

static AUTHORITY: LazyLock<Authority> = LazyLock::new(|| Authority::new().expect("an authority"));

impl Authority {
    fn new() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.subject_alt_names = vec![SanType::URI(format!("spiffe://{DOMAIN}").try_into()?)];
        let certificate = Bytes::copy_from_slice(params.self_signed(&key)?.der());
        Ok(Self { issuer: Issuer::new(params, key), certificate })
    }

    fn identity(&self, hint: &str) -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.subject_alt_names = vec![SanType::URI(NAME.try_into()?)];
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity {
            id: NAME.to_owned(),
            certificate: Bytes::copy_from_slice(certificate.der()),
            key: key.serialize_der().into(),
            bundle: self.certificate.clone(),
            hint: hint.to_owned(),
        })
    }
}

pub fn serve() -> SpiffeWorkloadAPIServer<impl SpiffeWorkloadAPI> {
    SpiffeWorkloadAPIServer::new(Workload)
}

struct Workload;

fn check(request: &Request<Empty>) -> Result<(), Status> {
    let value = request.metadata().get("workload.spiffe.io");
    if value.is_some_and(|value| value == "true") {
        Ok(())
    } else {
        Err(Status::invalid_argument("workload.spiffe.io"))
    }
}

#[tonic::async_trait]
impl SpiffeWorkloadAPI for Workload {
    type FetchX509SVIDStream = BoxStream<'static, Result<Identities, Status>>;

    async fn fetch_x509_svid(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::FetchX509SVIDStream>, Status> {
        check(&request)?;
        let identities = stream::iter(HINTS).then(async |hint| {
            if hint != HINTS[0] {
                tokio::time::sleep(ROTATION).await;
            }
            let identity = AUTHORITY.identity(hint).map_err(|error| Status::internal(error.to_string()))?;
            Ok::<_, Status>(Identities { identities: vec![identity] })
        });
        Ok(Response::new(identities.chain(stream::pending()).boxed()))
    }

    type FetchX509BundlesStream = BoxStream<'static, Result<Bundles, Status>>;

    async fn fetch_x509_bundles(
        &self,
        request: Request<Empty>,
    ) -> Result<Response<Self::FetchX509BundlesStream>, Status> {
        check(&request)?;
        let bundles = HashMap::from([(format!("spiffe://{DOMAIN}"), AUTHORITY.certificate.clone())]);
        Ok(Response::new(stream::iter([Ok(Bundles { bundles })]).chain(stream::pending()).boxed()))
    }
}
