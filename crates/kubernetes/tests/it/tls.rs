//! TLS to the API server, with the authority of the cluster.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use thalweg::channel::Resolver;
use thalweg_kubernetes::{ApiServer, Certificate, ClientTlsConfig, KubernetesResolver};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::api::{Api, Seen, addresses, slice};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Returns the settings of a server at 127.0.0.1.
    fn server(&self) -> Arc<ServerConfig> {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("TLS").with_no_client_auth();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).expect("a pair");
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    }

    /// Returns a resolver that trusts it.
    fn resolver(&self, api: &Api) -> KubernetesResolver {
        let authority = Certificate::from_der(self.0.der().to_vec());
        let settings = ApiServer::new(format!("https://{}", api.address))
            .tls(ClientTlsConfig::new().ca_certificate(authority))
            .token("secret");
        KubernetesResolver::with_api_server("orders.shop:grpc", settings).expect("valid")
    }
}

#[tokio::test]
async fn the_clusters_authority_is_trusted() {
    let authority = Authority::new("cluster");
    let mut api = Api::listen(Some(authority.server())).await;
    let resolver = authority.resolver(&api);
    let mut seen = Seen::new(&resolver);
    let slices = [slice("a", "4", &addresses(&["10.0.0.1:50051"]))];
    let (mut watch, ()) = tokio::join!(api.list_and_watch("5", &slices), seen.check(&["10.0.0.1:50051"]));
    watch.event("MODIFIED", &slice("a", "6", &addresses(&["10.0.0.2:50051"]))).await;
    seen.next(&["10.0.0.2:50051"]).await;
}

#[tokio::test]
async fn other_authorities_are_not_trusted() {
    let api = Api::listen(Some(Authority::new("other").server())).await;
    let resolver = Authority::new("cluster").resolver(&api);
    let error = resolver.resolve().await.expect_err("another authority").to_string();
    assert!(error.contains("certificate") && error.contains("namespace `shop`"), "{error}");
}
