//! Connection info in handlers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use thalweg_tonic_tests::pb::shop_client::ShopClient;
use thalweg_tonic_tests::pb::shop_server::ShopServer;
use thalweg_tonic_tests::{RunningServer, ShopService, order, serve, serve_with, within_a_minute};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::server::{Router, TcpConnectInfo, TlsConnectInfo, UdsConnectInfo};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use tonic::{Request, Response};

/// Creates a service, and a slot for what it sees in its last request.
fn observed_service<T: Send + 'static>(
    inspect: impl Fn(&Request<()>) -> T + Send + Sync + 'static,
) -> (ShopServer<ShopService>, Arc<Mutex<Option<T>>>) {
    let observed = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&observed);
    let shop = ShopService::on_buy(move |request| {
        let (metadata, extensions, order) = request.into_parts();
        let observed = inspect(&Request::from_parts(metadata, extensions, ()));
        *slot.lock().unwrap() = Some(observed);
        async { Ok(Response::new(order)) }
    });
    (ShopServer::new(shop), observed)
}

async fn call(channel: Channel) {
    ShopClient::new(channel).buy(order("bread")).await.unwrap();
}

#[tokio::test]
async fn tcp_connections_have_addresses() {
    let (shop, observed) = observed_service(|request| {
        let info = request.extensions().get::<TcpConnectInfo>().unwrap();
        assert_eq!((info.local_addr(), info.remote_addr()), (request.local_addr(), request.remote_addr()));
        assert!(request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>().is_none());
        assert!(request.peer_certs().is_none());
        (request.local_addr(), request.remote_addr().unwrap().ip())
    });
    let server = serve(Server::builder().add_service(shop.clone())).await;
    call(server.channel().await).await;
    assert_eq!(observed.lock().unwrap().take(), Some((Some(server.address), server.address.ip())));
    server.stop().await;
    // The same for servers with their own sockets, whatever their options.
    for server in [
        Server::builder(),
        Server::builder().tcp_nodelay(false),
        Server::builder().tcp_keepalive(Some(Duration::from_secs(60))),
        Server::builder().accept_http1(true),
    ] {
        let server = serve_on_own_socket({ server }.add_service(shop.clone())).await;
        call(server.channel().await).await;
        assert_eq!(observed.lock().unwrap().take(), Some((Some(server.address), server.address.ip())));
        server.stop().await;
    }
}

/// Serves on an address that was free a moment ago.
async fn serve_on_own_socket(router: Router) -> RunningServer {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let server = serve_with(address, async move |stopped| router.serve_with_shutdown(address, stopped).await);
    let listens = async {
        while TcpStream::connect(address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within_a_minute(listens).await;
    server
}

#[tokio::test]
async fn unix_connections_have_credentials() {
    let (shop, observed) = observed_service(|request| {
        assert_eq!((request.local_addr(), request.remote_addr()), (None, None));
        let info = request.extensions().get::<UdsConnectInfo>().unwrap();
        (info.peer_addr.as_ref().unwrap().is_unnamed(), info.peer_cred.unwrap().pid())
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let incoming = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
    tokio::spawn(Server::builder().add_service(shop).serve_with_incoming(incoming));
    let this = Some(i32::try_from(std::process::id()).unwrap());
    call(Endpoint::from_shared(format!("unix:{}", path.display())).unwrap().connect().await.unwrap()).await;
    assert_eq!(observed.lock().unwrap().take(), Some((true, this)));
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let endpoint = Endpoint::from_static("http://[::]:50051");
    call(endpoint.connect_with_connector(connector).await.unwrap()).await;
    assert_eq!(observed.lock().unwrap().take(), Some((true, this)));
}

/// Creates a certificate for `name`: certificate and key in PEM, certificate in DER.
fn make_certificate(name: &str) -> (String, String, Vec<u8>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
    let pem = |label: &str, der: &[u8]| {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
    };
    let der = certificate.der().to_vec();
    (pem("CERTIFICATE", &der), pem("PRIVATE KEY", &key.serialize_der()), der)
}

#[tokio::test]
async fn tls_connections_have_peer_certificates() {
    let (certificate, key, _) = make_certificate("shop.test");
    let clients = [make_certificate("ada.test"), make_certificate("bob.test")];
    let authorities = clients.iter().map(|(certificate, ..)| certificate.as_str()).collect::<String>();
    let (shop, observed) = observed_service(|request| {
        let tls = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>().unwrap();
        assert_eq!(tls.get_ref().remote_addr(), request.remote_addr());
        let tcp = request.extensions().get::<TcpConnectInfo>().unwrap();
        assert_eq!(tcp.remote_addr(), request.remote_addr());
        let chain = |certs: Option<Arc<Vec<_>>>| {
            certs.map(|certs| {
                certs.iter().map(|cert: &tonic::transport::CertificateDer| cert.to_vec()).collect()
            })
        };
        assert_eq!(chain(tls.peer_certs()), chain(request.peer_certs()));
        let shown: Option<Vec<Vec<u8>>> = chain(request.peer_certs());
        (request.local_addr(), request.remote_addr(), shown)
    });
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(&certificate, key))
        .client_ca_root(Certificate::from_pem(authorities))
        .client_auth_optional(true);
    let router = || Server::builder().tls_config(tls.clone()).unwrap().add_service(shop.clone());
    for server in [serve(router()).await, serve_on_own_socket(router()).await] {
        let mut ports = Vec::new();
        // Each chain is used twice; the second connection gets the cached info.
        for client in [None, Some(0), Some(1), None, Some(0), Some(1)] {
            let mut tls = ClientTlsConfig::new()
                .ca_certificate(Certificate::from_pem(&certificate))
                .domain_name("shop.test");
            if let Some((certificate, key, _)) = client.map(|client| &clients[client]) {
                tls = tls.identity(Identity::from_pem(certificate, key));
            }
            let endpoint = Endpoint::from_shared(format!("https://{}", server.address)).unwrap();
            let channel = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
            // The second call gets the same info as the first.
            for _ in 0..2 {
                call(channel.clone()).await;
                let (local, remote, shown) = observed.lock().unwrap().take().unwrap();
                assert_eq!(local, Some(server.address));
                assert_eq!(shown, client.map(|client| vec![clients[client].2.clone()]));
                ports.push(remote.unwrap().port());
            }
        }
        let one_connection_per_client = ports.chunks(2).all(|ports| ports[0] == ports[1]);
        ports.dedup();
        assert!(one_connection_per_client && ports.len() == 6, "{ports:?}");
        server.stop().await;
    }
}
