//! Channels behind proxies: HTTP CONNECT (gRFC A1) and SOCKS5.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg::channel::policy::PolicyConfig;
use thalweg::channel::{ChannelBuilder, EndpointList, Proxy};
use thalweg::tls::rustls::ServerConfig;
use thalweg::tls::rustls::crypto::aws_lc_rs;
use thalweg::tls::{ClientTlsConfig, PrivateKeyDer, ServerTlsConfig};
use thalweg::web::Web;
use thalweg::{Channel, Protocol, Server};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::support::certificates::Authority;
use crate::support::{Echo, echo, raw, soon, start};

/// Behaviour of a proxy after it has received a request.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    /// Connects to this server, whatever was asked for. The response comes in one piece with the server's first bytes
    /// if the server speaks first.
    Connect {
        server: SocketAddr,
        speaks_first: bool,
    },
    /// Sends this, and closes the connection.
    Respond(&'static [u8]),
    /// Sends header fields without end.
    Flood,
    Silence,
}

/// A proxy that records the requests it has received.
struct TestProxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    async fn start(behaviour: Behaviour) -> Self {
        Self::start_with(behaviour, None).await
    }

    /// Starts a proxy that clients connect to with TLS.
    async fn start_secure(behaviour: Behaviour, authority: &Authority, alpn: &[&str]) -> Self {
        let issued = authority.issue("127.0.0.1", |_| ());
        let key = PrivateKeyDer::Pkcs8(issued.key.into());
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![issued.certificate], key)
            .expect("an identity");
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self::start_with(behaviour, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(behaviour: Behaviour, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let recorded = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (recorded, tls) = (Arc::clone(&recorded), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(client, behaviour, recorded).await,
                        Some(tls) => {
                            let Ok(client) = tls.accept(client).await else { return };
                            serve(client, behaviour, recorded).await;
                        }
                    }
                });
            }
        });
        Self { address, requests }
    }

    /// Starts a proxy that connects to a server of its own, and returns the server's address, too.
    async fn to_server() -> (Self, SocketAddr) {
        let server = start(Server::builder().add_service(Echo::default()).web(Web::new())).await;
        let server = server.parse().expect("an address");
        (Self::start(Behaviour::Connect { server, speaks_first: false }).await, server)
    }

    fn proxy(&self, credentials: &str) -> Proxy {
        format!("http://{credentials}{}", self.address).parse().expect("a URL")
    }

    fn secure(&self, trusted: &Authority) -> Proxy {
        let proxy: Proxy = format!("https://{}", self.address).parse().expect("a URL");
        proxy.tls(ClientTlsConfig::new().ca_certificate(trusted.certificate()))
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    behaviour: Behaviour,
    requests: Arc<Mutex<Vec<String>>>,
) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(client.read_u8().await.expect("a whole request"));
    }
    requests.lock().unwrap().push(String::from_utf8(request).expect("text"));
    match behaviour {
        Behaviour::Connect { server, speaks_first } => {
            let mut server = TcpStream::connect(server).await.expect("a server");
            let mut response = b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n".to_vec();
            if speaks_first {
                server.read_buf(&mut response).await.expect("first bytes");
            }
            client.write_all(&response).await.expect("it listens");
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
        Behaviour::Respond(response) => client.write_all(response).await.expect("it listens"),
        Behaviour::Flood => {
            client.write_all(b"HTTP/1.1 200 OK\r\n").await.expect("it listens");
            while client.write_all(b"X-Field: value\r\n").await.is_ok() {}
        }
        Behaviour::Silence => std::future::pending().await,
    }
}

/// A target whose name cannot be looked up.
const TARGET: &str = "orders.invalid:50051";

async fn check_echo(builder: ChannelBuilder) {
    let channel = soon(builder.connect()).await.expect("a tunnel");
    assert_eq!(soon(echo(&channel, raw("x"))).await.expect("an echo"), raw("x"));
}

/// Returns the error of connecting to `target` through a proxy.
async fn error(target: &str, proxy: Proxy) -> String {
    let builder = Channel::builder(target).proxy(proxy).connect_timeout(Duration::from_millis(500));
    soon(builder.connect()).await.expect_err("no tunnel").to_string()
}

#[tokio::test]
async fn the_proxy_looks_up_the_name() {
    let (proxy, _) = TestProxy::to_server().await;
    check_echo(Channel::builder(TARGET).proxy(proxy.proxy("")).lanes(2)).await;
    let requests = proxy.requests();
    assert_eq!(requests.len(), 2, "one for each lane");
    let agent = requests[0].lines().find_map(|line| line.strip_prefix("User-Agent: grpc-rust-thalweg/"));
    let expected = format!(
        "CONNECT {TARGET} HTTP/1.1\r\nHost: {TARGET}\r\nUser-Agent: grpc-rust-thalweg/{}\r\n\r\n",
        agent.expect("a user agent")
    );
    assert_eq!(requests, [expected.as_str(); 2]);
}

#[tokio::test]
async fn balanced_channel_leaves_the_name_to_the_proxy() {
    let (proxy, _) = TestProxy::to_server().await;
    let builder = Channel::builder(TARGET).proxy(proxy.proxy("")).load_balancing(PolicyConfig::RoundRobin);
    check_echo(builder.lanes(1)).await;
    assert!(proxy.requests()[0].starts_with(&format!("CONNECT {TARGET} ")), "{:?}", proxy.requests());
}

/// Bytes after the response headers are the server's, such as its SETTINGS.
#[tokio::test]
async fn server_may_speak_first() {
    // Servers with more protocols wait for the client.
    let server = start(Server::builder().add_service(Echo::default())).await.parse().expect("an address");
    let proxy = TestProxy::start(Behaviour::Connect { server, speaks_first: true }).await;
    check_echo(Channel::builder(TARGET).proxy(proxy.proxy(""))).await;
}

#[tokio::test]
async fn credentials_are_sent_as_basic_authorization() {
    let (proxy, _) = TestProxy::to_server().await;
    check_echo(Channel::builder(TARGET).proxy(proxy.proxy("Aladdin:open%20sesame@"))).await;
    let expected = "\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
    assert!(proxy.requests()[0].contains(expected), "{:?}", proxy.requests());
}

#[tokio::test]
async fn tls_runs_inside_the_tunnel() {
    let authority = Authority::new();
    let tls = ServerTlsConfig::new().identity(authority.identity("orders.invalid"));
    let server = start(Server::builder().tls(tls).add_service(Echo::default())).await;
    let server = server.parse().expect("an address");
    let proxy = TestProxy::start(Behaviour::Connect { server, speaks_first: false }).await;
    let tls = ClientTlsConfig::new().ca_certificate(authority.certificate());
    check_echo(Channel::builder(format!("https://{TARGET}")).tls(tls).proxy(proxy.proxy(""))).await;
    assert!(!proxy.requests().is_empty());
}

/// Echoes a message of several TLS records, too.
async fn check_echoes(builder: ChannelBuilder) {
    let channel = soon(builder.connect()).await.expect("a tunnel");
    for message in [raw("x"), raw(vec![7; 1_000_000])] {
        assert_eq!(soon(echo(&channel, message.clone())).await.expect("an echo"), message);
    }
}

#[tokio::test]
async fn connection_to_the_proxy_may_use_tls() {
    let authority = Authority::new();
    let server = start(Server::builder().add_service(Echo::default()).web(Web::new())).await;
    let server = server.parse().expect("an address");
    for alpn in [&["http/1.1"][..], &[]] {
        let behaviour = Behaviour::Connect { server, speaks_first: false };
        let proxy = TestProxy::start_secure(behaviour, &authority, alpn).await;
        check_echoes(Channel::builder(TARGET).proxy(proxy.secure(&authority)).lanes(2)).await;
        assert_eq!(proxy.requests().len(), 2, "one for each lane");
        assert!(proxy.requests()[0].starts_with(&format!("CONNECT {TARGET} ")), "{:?}", proxy.requests());
        let builder = Channel::builder(TARGET).protocol(Protocol::Connect).http1(true);
        check_echoes(builder.proxy(proxy.secure(&authority))).await;
    }
    // Bytes after the response headers are the server's.
    let server = start(Server::builder().add_service(Echo::default())).await.parse().expect("an address");
    let behaviour = Behaviour::Connect { server, speaks_first: true };
    let proxy = TestProxy::start_secure(behaviour, &authority, &[]).await;
    check_echoes(Channel::builder(TARGET).proxy(proxy.secure(&authority))).await;
}

/// Each TLS has its own authorities.
#[tokio::test]
async fn tls_runs_inside_tls_to_the_proxy() {
    let (of_server, of_proxy) = (Authority::new(), Authority::new());
    let tls = ServerTlsConfig::new().identity(of_server.identity("orders.invalid"));
    let server = start(Server::builder().tls(tls).add_service(Echo::default()).web(Web::new())).await;
    let behaviour = Behaviour::Connect { server: server.parse().expect("an address"), speaks_first: false };
    let proxy = TestProxy::start_secure(behaviour, &of_proxy, &["h2", "http/1.1"]).await;
    let builder = |trusted: &Authority| {
        let tls = ClientTlsConfig::new().ca_certificate(trusted.certificate());
        Channel::builder(format!("https://{TARGET}")).tls(tls)
    };
    check_echoes(builder(&of_server).proxy(proxy.secure(&of_proxy))).await;
    let http1 = builder(&of_server).protocol(Protocol::Connect).http1(true);
    check_echoes(http1.proxy(proxy.secure(&of_proxy))).await;

    let error = async |builder: ChannelBuilder| {
        soon(builder.connect()).await.expect_err("an untrusted certificate").to_string()
    };
    let through = format!("failed to connect to {TARGET} through the proxy https://{}: ", proxy.address);
    let untrusted = format!("{through}TLS to the proxy itself: the TLS handshake failed: ");
    let text = error(builder(&of_server).proxy(proxy.secure(&of_server))).await;
    assert!(text.starts_with(&untrusted), "{text}");
    // By default the platform's authorities are trusted, not the channel's.
    let url = format!("https://{}", proxy.address).parse::<Proxy>().expect("a URL");
    let text = error(builder(&of_proxy).proxy(url)).await;
    assert!(text.starts_with(&untrusted), "{text}");
    let text = error(builder(&of_proxy).proxy(proxy.secure(&of_proxy))).await;
    assert!(text.starts_with(&format!("{TARGET}: the TLS handshake failed: ")), "{text}");
}

#[tokio::test]
async fn errors_of_a_proxy_with_tls_name_it() {
    let authority = Authority::new();
    let refused = Behaviour::Respond(b"HTTP/1.1 403 Forbidden\r\n\r\n");
    let proxy = TestProxy::start_secure(refused, &authority, &[]).await;
    let through = format!("failed to connect to {TARGET} through the proxy https://{}: ", proxy.address);
    let text = error(TARGET, proxy.secure(&authority)).await;
    assert!(text.starts_with(&format!("{through}it refused with 403 Forbidden; ")), "{text}");

    let silent = TestProxy::start_secure(Behaviour::Silence, &authority, &[]).await;
    let text = error(TARGET, silent.secure(&authority)).await;
    let at = silent.address;
    assert!(text.ends_with(&format!("the proxy https://{at} had not connected it to {TARGET}")), "{text}");

    // A proxy without TLS rejects the first bytes.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let plain = format!("https://{}", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.expect("a client");
        client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("it listens");
        client.read_to_end(&mut Vec::new()).await
    });
    let text = error(TARGET, plain.parse().expect("a URL")).await;
    assert!(text.contains(": TLS to the proxy itself: the server speaks HTTP/1.x without TLS"), "{text}");

    let with_tls = "http://proxy:1".parse::<Proxy>().expect("a URL").tls(ClientTlsConfig::new());
    let error = Channel::builder(TARGET).proxy(with_tls).connect_lazy().expect_err("no TLS").to_string();
    assert!(error.contains("it has TLS settings, but its URL does not use TLS"), "{error}");
}

#[tokio::test]
async fn http1_calls_use_the_proxy() {
    let (proxy, _) = TestProxy::to_server().await;
    let builder = Channel::builder(TARGET).protocol(Protocol::Connect).http1(true);
    check_echo(builder.proxy(proxy.proxy(""))).await;
    assert!(proxy.requests()[0].starts_with(&format!("CONNECT {TARGET} ")), "{:?}", proxy.requests());
}

#[tokio::test]
async fn all_addresses_except_unix_sockets_use_an_explicit_proxy() {
    let (proxy, server) = TestProxy::to_server().await;
    let check = async |builder: ChannelBuilder, asked: Option<&str>| {
        proxy.requests.lock().unwrap().clear();
        check_echo(builder.proxy(proxy.proxy("")).lanes(1)).await;
        let requests = proxy.requests();
        let found = requests.first().and_then(|request| request.split(' ').nth(1));
        assert_eq!(found, asked);
    };
    check(Channel::builder("[2001:db8::1]:50051"), Some("[2001:db8::1]:50051")).await;
    check(Channel::builder("10.1.2.3:5"), Some("10.1.2.3:5")).await;
    check(Channel::builder("ipv4:10.1.2.3:5"), Some("10.1.2.3:5")).await;
    check(Channel::builder("ipv6:[2001:db8::1]:5"), Some("[2001:db8::1]:5")).await;
    check(Channel::builder("passthrough:///a.invalid:5"), Some("a.invalid:5")).await;
    // A local address is for the connection to the proxy.
    let local = Channel::builder("[2001:db8::1]:5").local_address(Ipv4Addr::LOCALHOST.into());
    check(local, Some("[2001:db8::1]:5")).await;
    let list = EndpointList::new([SocketAddr::from(([10, 1, 2, 4], 6))]);
    let balanced = Channel::builder("orders").resolver(list).load_balancing(PolicyConfig::RoundRobin);
    check(balanced, Some("10.1.2.4:6")).await;
    // The application makes these connections itself.
    let connector =
        Channel::builder(TARGET).connector(move || async move { TcpStream::connect(server).await });
    check(connector, None).await;

    let folder = tempfile();
    let path = folder.join("socket");
    let unix = format!("unix:{}", path.display());
    let listening = Server::builder()
        .add_service(Echo::default())
        .bind(&[unix.parse().expect("an address")])
        .await
        .expect("a socket");
    tokio::spawn(listening.serve());
    check(Channel::builder(&unix), None).await;
    std::fs::remove_dir_all(folder).expect("its own folder");
}

fn tempfile() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("thalweg-proxies-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[tokio::test]
async fn refusals_name_proxy_status_and_remedy() {
    let check = async |behaviour: Behaviour, credentials: &str, expected: &str| {
        let proxy = TestProxy::start(behaviour).await;
        let at = proxy.address;
        let error = error(TARGET, proxy.proxy(credentials)).await;
        assert_eq!(
            error,
            format!("failed to connect to {TARGET} through the proxy http://{at}: {expected}"),
            "{behaviour:?}"
        );
    };
    let respond = |response: &'static str| Behaviour::Respond(response.as_bytes());
    let unauthorized = respond("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    let refused = "it refused with 407 Proxy Authentication Required; ";
    let set = "set user and password in the proxy's URL: http://USER:PASSWORD@HOST:PORT";
    check(unauthorized, "", &format!("{refused}{set}")).await;
    check(unauthorized, "me:secret@", &format!("{refused}check user and password in the proxy's URL")).await;
    let reach = "check the server's name, and that the proxy can reach it";
    let bad = respond("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nhello");
    check(bad, "", &format!("it refused with 502 Bad Gateway; {reach}")).await;
    let permits = "check that the proxy permits tunnels (CONNECT) to this server and port";
    check(respond("HTTP/1.1 403 \r\n\r\n"), "", &format!("it refused with 403; {permits}")).await;
    // The proxy's text does not reach a terminal raw.
    let red = respond("HTTP/1.1 502 \u{1b}[31mred\u{7}\r\n\r\n");
    check(red, "", &format!("it refused with 502 ?[31mred?; {reach}")).await;
    let not_http = "its response is not HTTP/1; check the proxy's address and port";
    check(respond("SSH-2.0-OpenSSH_9.2\r\n"), "", not_http).await;
    check(respond("HTTP/1.1 yes\r\n\r\n"), "", not_http).await;
    check(
        respond("H"),
        "",
        "it closed the connection without a response; check the proxy's address and port",
    )
    .await;
    check(respond(""), "", "it closed the connection without a response; check the proxy's address and port")
        .await;
    check(Behaviour::Flood, "", "its response headers have more than 16384 bytes").await;
}

#[tokio::test]
async fn interim_responses_are_skipped() {
    let refused =
        Behaviour::Respond(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 405 Method Not Allowed\r\n\r\n");
    let proxy = TestProxy::start(refused).await;
    let error = error(TARGET, proxy.proxy("")).await;
    assert!(error.contains("it refused with 405 Method Not Allowed;"), "{error}");
}

#[tokio::test]
async fn silent_and_missing_proxies_are_named() {
    let silent = TestProxy::start(Behaviour::Silence).await;
    let at = silent.address;
    assert_eq!(
        error(TARGET, silent.proxy("")).await,
        format!(
            "no connection to {TARGET} within 500ms: the proxy http://{at} had not connected it to {TARGET}"
        )
    );
    let unused =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port").local_addr().expect("bound");
    let text = error(TARGET, format!("http://{unused}").parse().expect("a URL")).await;
    let expected =
        format!("failed to connect to {TARGET} through the proxy http://{unused}: failed to connect to");
    assert!(text.starts_with(&expected), "{text}");
    let nowhere = "http://proxy.invalid:1".parse().expect("a URL");
    let text = error(TARGET, nowhere).await;
    assert!(
        text.contains("through the proxy http://proxy.invalid:1: failed to resolve proxy.invalid:1: "),
        "{text}"
    );
}

#[cfg(feature = "socks")]
mod socks {
    use super::*;

    /// Serves one client of a SOCKS5 proxy with user and password (RFC 1928, RFC 1929), and returns the name it asked
    /// for. With another password, or without a server, it refuses.
    async fn serve(listener: TcpListener, server: Option<SocketAddr>) -> Option<String> {
        let (mut client, _) = listener.accept().await.expect("a client");
        let methods = take(&mut client, 2).await[1];
        assert!(take(&mut client, methods.into()).await.contains(&2), "it offers a password");
        client.write_all(&[5, 2]).await.expect("it listens");
        let user = take(&mut client, 2).await[1];
        let user = take(&mut client, user.into()).await;
        let password = client.read_u8().await.expect("a length");
        let password = take(&mut client, password.into()).await;
        let is_known = (user, password) == (b"me".to_vec(), b"secret".to_vec());
        client.write_all(&[1, u8::from(!is_known)]).await.expect("it listens");
        if !is_known {
            return None;
        }
        assert_eq!(take(&mut client, 4).await, [5, 1, 0, 3], "CONNECT to a name");
        let len = client.read_u8().await.expect("a length");
        let name = String::from_utf8(take(&mut client, len.into()).await).expect("a name");
        let port = client.read_u16().await.expect("a port");
        let reply = if server.is_some() { 0 } else { 5 };
        client.write_all(&[5, reply, 0, 1, 0, 0, 0, 0, 0, 0]).await.expect("it listens");
        if let Some(server) = server {
            let mut server = TcpStream::connect(server).await.expect("a server");
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
        Some(format!("{name}:{port}"))
    }

    async fn take(client: &mut TcpStream, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        client.read_exact(&mut bytes).await.expect("bytes");
        bytes
    }

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("bound");
        (listener, address)
    }

    #[tokio::test]
    async fn the_proxy_looks_up_the_name() {
        let (_, server) = TestProxy::to_server().await;
        let (listener, at) = listener().await;
        let proxy = tokio::spawn(serve(listener, Some(server)));
        let url: Proxy = format!("socks5://me:secret@{at}").parse().expect("a URL");
        check_echo(Channel::builder(TARGET).proxy(url).lanes(1)).await;
        assert_eq!(proxy.await.expect("no panic").as_deref(), Some(TARGET));
    }

    #[tokio::test]
    async fn refusals_name_the_proxy() {
        let check = async |password: &str, expected: &str| {
            let (listener, at) = listener().await;
            tokio::spawn(serve(listener, None));
            let url = format!("socks5://me:{password}@{at}").parse().expect("a URL");
            let start = format!("failed to connect to {TARGET} through the proxy socks5://{at}: ");
            assert_eq!(error(TARGET, url).await, format!("{start}it refused or broke SOCKS5: {expected}"));
        };
        check("secret", "Connection refused").await;
        check("wrong", "Password auth failure, code: 1").await;
    }
}
