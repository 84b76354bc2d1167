//! Identifies clients by their TLS certificates.
//!
//! Run it with `cargo run -p thalweg-examples --example mtls`. It prints:
//!
//! ```text
//! Hello Ada!
//! Hello Grace!
//! without a certificate: Unavailable
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use thalweg::tls::{Certificate, CertificateDer, ClientTlsConfig, Identity, PrivateKeyDer, ServerTlsConfig};
use thalweg::{Channel, ConnectionInfo, Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct CertificateGreeter {
    /// Keyed by certificate. To use the names in certificates, add an X.509 parser.
    clients: HashMap<CertificateDer<'static>, &'static str>,
}

impl Greeter for CertificateGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        // The handshake has verified that `client_ca_root` issued it and that the client owns its key.
        let connection = request.extensions().get::<Arc<ConnectionInfo>>();
        let chain = connection.and_then(|connection| connection.tls()?.peer_certificates());
        let certificate = chain.and_then(<[_]>::first);
        let client = certificate.and_then(|certificate| self.clients.get(certificate));
        let client = client.ok_or_else(|| Status::permission_denied("I don't know you"))?;
        Ok(Response::new(HelloReply { message: format!("Hello {client}!") }))
    }
}

/// A certificate authority made for this run. In production, certificates are files; `thalweg certs` makes some for
/// experiments.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new([])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Issues a certificate and its key.
    fn issue(
        &self,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<(CertificateDer<'static>, Identity), rcgen::Error> {
        let mut params = CertificateParams::new([name.to_owned()])?;
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?.der().clone();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Ok((certificate.clone(), Identity::from_der(vec![certificate], key)))
    }

    fn certificate(&self) -> Certificate {
        Certificate::from_der(self.0.der().to_vec())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let authority = Authority::new()?;
    let (_, server_identity) = authority.issue("localhost", ExtendedKeyUsagePurpose::ServerAuth)?;
    let (ada, ada_identity) = authority.issue("ada.example", ExtendedKeyUsagePurpose::ClientAuth)?;
    let (grace, grace_identity) = authority.issue("grace.example", ExtendedKeyUsagePurpose::ClientAuth)?;

    let service =
        GreeterServer::new(CertificateGreeter { clients: HashMap::from([(ada, "Ada"), (grace, "Grace")]) });
    // Clients and servers may use different authorities; this example uses one for both.
    let tls = ServerTlsConfig::new().identity(server_identity).client_ca_root(authority.certificate());
    let server = Server::builder().tls(tls).add_service(service).bind(&["127.0.0.1:0".parse()?]).await?;
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());

    let tls = || ClientTlsConfig::new().ca_certificate(authority.certificate()).domain_name("localhost");
    for tls in [tls().identity(ada_identity), tls().identity(grace_identity), tls()] {
        let greeter = GreeterClient::new(Channel::builder(&*target).tls(tls).connect_lazy()?);
        match greeter.say_hello(HelloRequest::default()).await {
            Ok(response) => println!("{}", response.into_inner().message),
            Err(status) => println!("without a certificate: {:?}", status.code()),
        }
    }
    Ok(())
}
