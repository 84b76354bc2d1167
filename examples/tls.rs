//! Serves TLS, with clients that trust the certificate and clients that do not.
//!
//! Run it with `cargo run -p thalweg-examples --example tls`. It prints:
//!
//! ```text
//! Hello world, by TLSv1.3!
//! with another authority: Unavailable
//! without TLS: Unavailable
//! ```

use std::error::Error;
use std::sync::Arc;

use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use thalweg::tls::{Certificate, ClientTlsConfig, Identity, PrivateKeyDer};
use thalweg::{Channel, ConnectionInfo, Request, Response, Server, Status};

mod helloworld {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("helloworld");
}

struct MyGreeter;

impl Greeter for MyGreeter {
    async fn say_hello(&self, request: Request<HelloRequest>) -> Result<Response<HelloReply>, Status> {
        // With TLS, connection info is always available.
        let connection = request.extensions().get::<Arc<ConnectionInfo>>();
        let version = connection.and_then(|connection| Some(connection.tls()?.version()));
        let message =
            format!("Hello {}, by {}!", request.get_ref().name, version.unwrap_or("nothing secret"));
        Ok(Response::new(HelloReply { message }))
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

    /// In production: `Identity::from_files("server.pem", "server.key")`, which reloads renewed files.
    fn identity(&self, name: &str) -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([name.to_owned()])?.signed_by(&key, &self.0)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Ok(Identity::from_der(vec![certificate.der().clone()], key))
    }

    /// In production: `Certificate::from_file("ca.pem")`.
    fn certificate(&self) -> Certificate {
        Certificate::from_der(self.0.der().to_vec())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let authority = Authority::new()?;
    let server = Server::builder().tls(authority.identity("localhost")?);
    let server = server.add_service(GreeterServer::new(MyGreeter)).bind(&["127.0.0.1:0".parse()?]).await?;
    let target = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());

    // The certificate is for a name but the target is an address, so `domain_name` sets the expected name. For a public
    // certificate, the target `https://host:port` suffices: without `ca_certificate` the platform's authorities are
    // trusted.
    let tls = || ClientTlsConfig::new().domain_name("localhost");
    let trusted = Channel::builder(&*target).tls(tls().ca_certificate(authority.certificate()));
    let greeter = GreeterClient::new(trusted.connect().await?);
    let hello = || HelloRequest { name: "world".to_owned() };
    println!("{}", greeter.say_hello(hello()).await?.into_inner().message);

    let wrong_authority =
        Channel::builder(&*target).tls(tls().ca_certificate(Authority::new()?.certificate()));
    let plain = Channel::builder(&*target);
    for (name, channel) in [("with another authority", wrong_authority), ("without TLS", plain)] {
        let greeter = GreeterClient::new(channel.connect_lazy()?);
        let status = greeter.say_hello(hello()).await.expect_err("there is no connection");
        // The message says what failed and how to fix it.
        println!("{name}: {:?}", status.code());
    }
    Ok(())
}
