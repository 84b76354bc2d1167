//! A server with the services of tonic's examples: `helloworld` with the errors of `richer-error` and the encodings of
//! `compression`, `routeguide`, `streaming`, `authentication`, `health` and `reflection`. TLS works as in `tls` and
//! `tls_client_auth`.
//!
//! `tonic-examples PORT [tls|mtls CERTIFICATES]`, where the folder has the files of grpc-go's `data/x509`.

mod echo;
mod greeter;
mod pb;
mod route_guide;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::{Certificate, Identity, Server, ServerTlsConfig};

use pb::echo::echo_server::EchoServer;
use pb::helloworld::greeter_server::GreeterServer;
use pb::routeguide::route_guide_server::RouteGuideServer;
use pb::unaryecho::echo_server::EchoServer as UnaryEchoServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (port, tls) = match args[..] {
        [port] => (port, None),
        [port, "tls", folder] => (port, Some(tls(Path::new(folder), false)?)),
        [port, "mtls", folder] => (port, Some(tls(Path::new(folder), true)?)),
        _ => return Err("usage: tonic-examples PORT [tls|mtls CERTIFICATES]".into()),
    };
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls)?;
    }
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_serving::<GreeterServer<greeter::Greeter>>().await;
    reporter.set_not_serving::<RouteGuideServer<route_guide::RouteGuide>>().await;
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(pb::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let greeter = GreeterServer::new(greeter::Greeter).accept_compressed(Gzip).send_compressed(Gzip);
    server
        .add_service(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?)
        .add_service(greeter)
        .add_service(RouteGuideServer::new(route_guide::RouteGuide::default()))
        .add_service(EchoServer::new(echo::Echo))
        .add_service(UnaryEchoServer::with_interceptor(echo::UnaryEcho, echo::check_auth))
        .serve(format!("127.0.0.1:{port}").parse()?)
        .await?;
    Ok(())
}

fn tls(folder: &Path, requests_client_certificates: bool) -> Result<ServerTlsConfig, Box<dyn Error>> {
    let read = |name: &str| fs::read(folder.join(name));
    let config = ServerTlsConfig::new()
        .identity(Identity::from_pem(read("server_cert.pem")?, read("server_key.pem")?));
    if !requests_client_certificates {
        return Ok(config);
    }
    Ok(config.client_ca_root(Certificate::from_pem(read("client_ca_cert.pem")?)))
}
