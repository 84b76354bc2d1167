//! TLS between Thalweg's own client and server, and with other peers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rcgen::date_time_ymd;
use thalweg::server::{Methods, ServerBuilder, Service};
use thalweg::tls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use thalweg::tls::rustls::crypto::aws_lc_rs;
use thalweg::tls::rustls::{self, ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use thalweg::tls::{
    Certificate, CertificateDer, ClientTlsConfig, Identity, LiveIdentity, PrivateKeyDer, ServerTlsConfig,
    TlsVersion,
};
use thalweg::{
    Channel, ConnectionInfo, Method, Raw, Request, Response, Server, ServiceOptions, Status,
    channel::ConnectError,
};

use crate::support::certificates::{Authority, Issued, pem};
use crate::support::{Echo, REPEAT, chat, echo, items, raw, soon, start};

/// Responds with the server's view of the client's connection.
struct ConnectionService;

static DESCRIBE: Method = Method::new("/test.Who/Who");

impl Service for ConnectionService {
    const NAME: &'static str = "test.Who";

    fn register(self, methods: &mut Methods<'_>) {
        methods.unary("Who", &Arc::new(self), &ServiceOptions::default(), Self::describe_connection);
    }
}

impl ConnectionService {
    #[expect(clippy::unused_async, reason = "handlers are async")]
    async fn describe_connection(self: Arc<Self>, request: Request<Raw>) -> Result<Response<Raw>, Status> {
        let info = request.extensions().get::<Arc<ConnectionInfo>>();
        let text = match info.and_then(|info| info.tls()) {
            None => format!("plain {}", info.is_some()),
            Some(tls) => format!(
                "{} {} {} {} resumed={} certificates={} {}",
                tls.version(),
                tls.key_exchange(),
                tls.alpn_protocol().unwrap_or("none"),
                tls.server_name().unwrap_or("none"),
                tls.is_resumed(),
                tls.peer_certificates().map_or(0, <[_]>::len),
                info.and_then(|info| info.remote_addr()).map_or_else(String::new, |at| at.ip().to_string()),
            ),
        };
        Ok(Response::new(raw(text)))
    }
}

async fn describe_connection(channel: &Channel) -> Result<String, Status> {
    let options = thalweg::CallOptions::default();
    let response: Response<Raw> = channel.unary(&DESCRIBE, Request::new(raw("")), &options).await?;
    Ok(String::from_utf8(response.into_inner().0.to_vec()).expect("text"))
}

fn server() -> ServerBuilder {
    Server::builder().add_service(Echo::default()).add_service(ConnectionService)
}

async fn secure(tls: ServerTlsConfig) -> String {
    start(server().tls(tls)).await
}

async fn connect(target: &str, tls: ClientTlsConfig) -> Result<Channel, ConnectError> {
    soon(Channel::builder(target).tls(tls).connect()).await
}

/// Connects like [`connect`] and returns the error, which may appear only at the first call. In TLS 1.3 the client
/// finishes its handshake before the server has checked its certificate.
async fn connect_error(target: &str, tls: ClientTlsConfig) -> String {
    match connect(target, tls).await {
        Err(error) => error.to_string(),
        Ok(channel) => {
            soon(describe_connection(&channel)).await.expect_err("it is refused").message().to_owned()
        }
    }
}

/// For a test server at 127.0.0.1 whose certificate is for localhost.
fn trusting(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new().ca_certificate(authority.certificate()).domain_name("localhost")
}

#[tokio::test]
async fn all_call_types_work_with_every_tls_version() {
    let authority = Authority::new();
    let target = secure(authority.identity("localhost").into()).await;
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let tls = match version {
            TlsVersion::Tls13 => trusting(&authority).min_version(version),
            _ => ClientTlsConfig::from_rustls(Arc::new(tls12(&authority))).domain_name("localhost"),
        };
        let channel = connect(&target, tls).await.expect("a connection");
        let expected = match version {
            TlsVersion::Tls13 => "TLSv1.3 X25519MLKEM768 h2 localhost resumed=false certificates=0 127.0.0.1",
            _ => "TLSv1.2 X25519 h2 localhost resumed=false certificates=0 127.0.0.1",
        };
        assert_eq!(describe_connection(&channel).await.expect("a response"), expected);
        for size in [0, 1, 16_383, 16_384, 16_385, 300_000, 4 << 20] {
            let message = raw((0..size).map(|at| at as u8).collect::<Vec<_>>());
            assert_eq!(soon(echo(&channel, message.clone())).await.expect("a response"), message, "{size}");
        }
        // Both directions at once, with messages larger than one read.
        let sent: Vec<Raw> = (0..40).map(|at| raw(vec![at as u8; 17 * 1024 * at])).collect();
        let mut responses = soon(chat(&channel, items(sent.clone()))).await.expect("a stream");
        for expected in sent {
            let response = soon(responses.message()).await.expect("no error");
            assert_eq!(response.map(|response| response.0.len()), Some(expected.0.len()));
        }
        let options = thalweg::CallOptions::default();
        let mut many: thalweg::Streaming<Raw> = channel
            .server_streaming(&REPEAT, Request::new(raw("20000 100")), &options)
            .await
            .expect("a stream")
            .into_inner();
        let mut count = 0;
        while let Some(message) = soon(many.message()).await.expect("no error") {
            assert_eq!(message.0.len(), 100);
            count += 1;
        }
        assert_eq!(count, 20_000);
    }
}

fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate_der()).expect("an authority");
    roots
}

fn tls12(authority: &Authority) -> ClientConfig {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::X25519];
    ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .expect("a version")
        .with_root_certificates(roots(authority))
        .with_no_client_auth()
}

#[tokio::test]
async fn server_requests_client_certificates() {
    let (authority, other) = (Authority::new(), Authority::new());
    let tls = || {
        ServerTlsConfig::new()
            .identity(authority.identity("localhost"))
            .client_ca_root(authority.certificate())
    };
    let (must, may) = (secure(tls()).await, secure(tls().client_auth_optional(true)).await);
    let known = || trusting(&authority).identity(authority.identity("client"));
    for target in [&must, &may] {
        let channel = connect(target, known()).await.expect("a connection");
        let received = describe_connection(&channel).await.expect("a response");
        assert!(received.contains("certificates=1"), "{received}");
    }
    let channel = connect(&may, trusting(&authority)).await.expect("a connection");
    let received = describe_connection(&channel).await.expect("a response");
    assert!(received.contains("certificates=0"), "{received}");

    let received = connect_error(&must, trusting(&authority)).await;
    assert!(received.contains("set a TLS identity"), "{received}");
    for target in [&must, &may] {
        let received = connect_error(target, trusting(&authority).identity(other.identity("client"))).await;
        assert!(received.contains("does not trust the authority"), "{received}");
    }
}

#[tokio::test]
async fn untrusted_certificate_is_named() {
    let (authority, other) = (Authority::new(), Authority::new());
    let check = async |identity: Identity, tls: ClientTlsConfig, part: &str| {
        let target = secure(identity.into()).await;
        let error = connect(&target, tls).await.expect_err("it is refused").to_string();
        assert!(error.contains(part) && error.contains(&target), "{error}");
    };
    check(other.identity("localhost"), trusting(&authority), "no trusted authority").await;
    check(authority.identity("elsewhere"), trusting(&authority), "use a name that is in the certificate")
        .await;
    let expired = authority.issue("localhost", |params| params.not_after = date_time_ymd(2020, 1, 1));
    check(expired.identity(), trusting(&authority), "renew the peer's certificate").await;
    let future = authority.issue("localhost", |params| {
        params.not_before = date_time_ymd(4000, 1, 1);
        params.not_after = date_time_ymd(4001, 1, 1);
    });
    check(future.identity(), trusting(&authority), "check the clock of this machine").await;
    // With or without the platform's authorities: none of them knows this certificate.
    check(
        authority.identity("localhost"),
        ClientTlsConfig::new().domain_name("localhost").ca_certificate(other.certificate()),
        "no trusted authority",
    )
    .await;

    let target = secure(other.identity("elsewhere").into()).await;
    let anyone = ClientTlsConfig::new().danger_accept_any_certificate();
    let channel = connect(&target, anyone).await.expect("nothing is verified");
    describe_connection(&channel).await.expect("a response");
}

#[tokio::test]
async fn trust_anchors_and_verifiers_decide_trust() {
    let authority = Authority::new();
    let target = secure(authority.identity("localhost").into()).await;
    let client = || ClientTlsConfig::new().domain_name("localhost");
    let nobody = connect(&target, client().trust_anchors([])).await.expect_err("nobody is trusted");
    assert!(nobody.to_string().contains("no trusted authority"), "{nobody}");
    let other = roots(&Authority::new()).roots;
    let stranger = connect(&target, client().trust_anchors(other.clone())).await;
    assert!(stranger.is_err(), "another authority is trusted");
    for trusted_roots in [
        client().trust_anchors(other).trust_anchors(roots(&authority).roots),
        client().trust_anchors([]).ca_certificate(authority.certificate()),
        client().trust_anchors([]).verifier(Arc::new(BelievesAll)),
    ] {
        assert!(trusted_roots.check("elsewhere").is_ok());
        let channel = connect(&target, trusted_roots).await.expect("the server is believed");
        describe_connection(&channel).await.expect("a response");
    }
}

#[test]
fn invalid_client_tls_is_an_error_before_connecting() {
    let refused =
        |tls: ClientTlsConfig, host: &str| tls.check(host).expect_err("it can't be used").to_string();
    let nobody = || ClientTlsConfig::new().trust_anchors([]);
    assert!(nobody().check("a.test").is_ok());
    assert!(refused(nobody(), "a b").contains("invalid certificate name `a b`"));
    assert!(refused(nobody().ca_certificate(Certificate::from_pem("")), "a.test").contains("no certificate"));
}

#[tokio::test]
async fn targets_set_server_name_and_authority() {
    let authority = Authority::new();
    let address = secure(authority.identity("127.0.0.1").into()).await;
    let port = address.rsplit_once(':').expect("a port").1.to_owned();
    let by_name = secure(authority.identity("localhost").into()).await;
    let name_port = by_name.rsplit_once(':').expect("a port").1.to_owned();
    let trusting = || ClientTlsConfig::new().ca_certificate(authority.certificate());
    let check = async |target: &str, authority: Option<&str>, sni: &str| {
        let mut builder = Channel::builder(target).tls(trusting());
        if let Some(authority) = authority {
            builder = builder.authority(authority);
        }
        let channel = soon(builder.connect()).await.expect("a connection");
        let received = describe_connection(&channel).await.expect("a response");
        assert!(received.contains(&format!("h2 {sni} ")), "{target}: {received}");
    };
    // RFC 6066 §3: SNI does not carry IP addresses.
    check(&address, None, "none").await;
    check(&format!("https://127.0.0.1:{port}/"), None, "none").await;
    check(&format!("ipv4:127.0.0.1:{port}"), None, "none").await;
    check(&format!("https://localhost:{name_port}"), None, "localhost").await;
    check(&by_name, Some("localhost:1"), "localhost").await;

    let failed = |target: &str, tls: ClientTlsConfig| {
        let error = Channel::builder(target).tls(tls).connect_lazy().expect_err("it goes not together");
        error.to_string()
    };
    let error = failed("http://localhost:1", trusting());
    assert!(error.contains("does not use TLS"), "{error}");
    let error = failed("localhost:1", trusting().domain_name("no name"));
    assert!(error.contains("invalid certificate name `no name`"), "{error}");
    let error = failed("localhost:1", trusting().ca_certificate(Certificate::from_file("/no/such/ca.pem")));
    assert!(error.contains("failed to read the authority's certificate /no/such/ca.pem"), "{error}");
    let error = failed("localhost:1", trusting().ca_certificate(Certificate::from_pem("hello")));
    assert!(error.contains("no certificate"), "{error}");
    let error = failed("localhost:1", trusting().ca_certificate(Certificate::from_der(b"hello".to_vec())));
    assert!(error.contains("certificate 1"), "{error}");
}

#[test]
fn invalid_identities_are_named() {
    let authority = Authority::new();
    let (one, other) = (authority.issue("a", |_| ()), authority.issue("b", |_| ()));
    let check = |tls: ServerTlsConfig, part: &str| {
        let error = server().tls(tls).into_parts().expect_err("it can't be used").to_string();
        assert!(error.contains(part), "{error}");
    };
    check(ServerTlsConfig::new(), "set an identity");
    let pair = |certificate: &Issued, key: &Issued| {
        Identity::from_pem(pem("CERTIFICATE", &certificate.certificate), pem("PRIVATE KEY", &key.key))
    };
    check(pair(&one, &other).into(), "does not match the certificate");
    check(Identity::from_pem("", pem("PRIVATE KEY", &one.key)).into(), "no certificate");
    check(Identity::from_pem(pem("CERTIFICATE", &one.certificate), "").into(), "no private key");
    let swapped = Identity::from_pem(pem("PRIVATE KEY", &one.key), pem("CERTIFICATE", &one.certificate));
    check(swapped.into(), "swapped");
    check(
        Identity::from_files("/no/such.pem", "/no/such.key").into(),
        "failed to read the certificate /no/such.pem",
    );
    let unfit = Identity::from_pem(pem("CERTIFICATE", b"hello"), pem("PRIVATE KEY", b"hello"));
    check(unfit.into(), "the identity (PEM)");
    server().tls(pair(&one, &one)).into_parts().expect("a pair");

    let named = |name: &str| ServerTlsConfig::new().identity_for(name, one.identity());
    check(named("b"), "the certificate is not valid for `b`");
    check(named("*.a"), "the certificate is not valid for `*.a`");
    for name in ["", "a:443", "127.0.0.1", "a b", "*"] {
        check(named(name), &format!("invalid server name `{name}`"));
    }
    server().tls(named("a")).into_parts().expect("a name of the certificate");

    let with = |identity: Identity, other: &Issued| {
        ServerTlsConfig::from(identity).identity_for_its_names(other.identity())
    };
    check(with(one.identity(), &one), "`a` is in two certificates");
    check(with(other.identity(), &one).identity_for_its_names(one.identity()), "`a` is in two certificates");
    let of_address = authority.issue("127.0.0.1", |_| ());
    check(with(one.identity(), &of_address), "no DNS name");
    server().tls(with(of_address.identity(), &one)).into_parts().expect("a default without a name");
    server().tls(with(one.identity(), &other)).into_parts().expect("two names");
}

#[tokio::test]
async fn sessions_are_resumed() {
    let authority = Authority::new();
    let tls = ServerTlsConfig::new()
        .identity(authority.identity("localhost"))
        .client_ca_root(authority.certificate())
        .client_auth_optional(true);
    let target = secure(tls).await;
    for version in [rustls::version::TLS12.version, rustls::version::TLS13.version] {
        let is_12 = version == rustls::version::TLS12.version;
        let config = if is_12 {
            ClientTlsConfig::from_rustls(Arc::new(tls12(&authority))).domain_name("localhost")
        } else {
            trusting(&authority).identity(authority.identity("client"))
        };
        // Each lane is a connection of the same channel.
        let channel =
            soon(Channel::builder(&target).tls(config).lanes(1).connect()).await.expect("a connection");
        let received = describe_connection(&channel).await.expect("a response");
        assert!(received.contains("resumed=false"), "{received}");
        let first = channel.lanes()[0].id;
        channel.engine().open_lanes(1, "for the test");
        crate::support::until(|| channel.lanes().iter().filter(|lane| lane.state == "READY").count() == 2)
            .await;
        channel.engine().close_lanes(&[first], "for the test");
        let received = describe_connection(&channel).await.expect("a response");
        assert!(received.contains("resumed=true"), "{received}");
        assert!(received.contains(if is_12 { "certificates=0" } else { "certificates=1" }), "{received}");
    }
}

#[tokio::test]
async fn certificates_are_renewed_without_restart() {
    let (authority, next) = (Authority::new(), Authority::new());
    let folder = std::env::temp_dir().join(format!("thalweg-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let from_files = authority.issue("localhost", |_| ()).write(&folder);
    let live = LiveIdentity::new(authority.identity("localhost"));
    let of = |identity: Identity| ServerTlsConfig::new().identity(identity).reload_interval(Duration::ZERO);
    let (files, lived) = (secure(of(from_files)).await, secure(of((&live).into())).await);
    for target in [&files, &lived] {
        connect(target, trusting(&authority)).await.expect("the first certificate");
    }
    // An unusable identity changes nothing.
    std::fs::write(folder.join("key.pem"), "half a fi").expect("a file");
    live.replace(Identity::from_pem("", ""));
    for target in [&files, &lived] {
        connect(target, trusting(&authority)).await.expect("the first certificate, still");
    }
    next.issue("localhost", |_| ()).write(&folder);
    live.replace(next.identity("localhost"));
    for target in [&files, &lived] {
        connect(target, trusting(&next)).await.expect("the next certificate");
        connect(target, trusting(&authority)).await.expect_err("the first certificate is gone");
    }
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[tokio::test]
async fn configuration_is_renewed_before_handshakes() {
    let (authority, next) = (Authority::new(), Authority::new());
    let of = |authority: &Authority| {
        ServerTlsConfig::new()
            .identity(authority.identity("localhost"))
            .client_ca_root(authority.certificate())
    };
    let unusable = ServerTlsConfig::new().identity(Identity::from_pem("", ""));
    let renewals = Mutex::new(vec![Some(of(&next)), Some(unusable), None, None]);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let tls = of(&authority).renew_with(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let renewal = renewals.lock().expect("no panic").pop().flatten();
        async move {
            tokio::task::yield_now().await;
            renewal
        }
    });
    let target = secure(tls).await;
    let client = |authority: &Authority| trusting(authority).identity(authority.identity("client"));
    // The first, that again, an unusable one, and the next, which also has other clients.
    for _ in 0..3 {
        connect(&target, client(&authority)).await.expect("the first configuration");
    }
    connect(&target, client(&next)).await.expect("the next configuration");
    assert_eq!(calls.load(Ordering::Relaxed), 4, "one renewal for each connection");
    connect(&target, client(&authority)).await.expect_err("the first configuration is gone");
}

/// Returns the certificate shown to a client that asks for this name, or for none.
fn shown(target: &str, server_name: Option<&str>) -> Result<CertificateDer<'static>, String> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(BelievesAll))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(target).expect("a listener");
    // RFC 6066 §3: SNI does not carry IP addresses.
    let name = server_name.unwrap_or("127.0.0.1").to_owned().try_into().expect("a name");
    let mut stream =
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a configuration"), socket);
    stream.conn.complete_io(&mut stream.sock).map_err(|error| error.to_string())?;
    let chain = stream.conn.peer_certificates().expect("certificates");
    Ok(chain[0].clone())
}

#[derive(Debug)]
struct BelievesAll;

impl ServerCertVerifier for BelievesAll {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &rustls::pki_types::ServerName<'_>,
        _ocsp: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_is_chosen_by_sni() {
    let authority = Authority::new();
    let issue = |name: &str| authority.issue(name, |_| ());
    let (default, shop, apis, one_api) =
        (issue("localhost"), issue("Shop.test"), issue("*.api.test"), issue("one.api.test"));
    let named = || {
        ServerTlsConfig::new()
            .identity_for("shop.Test", shop.identity())
            .identity_for("*.api.test", apis.identity())
            .identity_for("one.api.test", one_api.identity())
    };
    let strict = secure(named()).await;
    let lenient = secure(named().identity(default.identity())).await;
    let by_certificates = [&shop, &apis, &one_api]
        .into_iter()
        .fold(default.identity().into(), |tls: ServerTlsConfig, issued| {
            tls.identity_for_its_names(issued.identity())
        });
    let by_certificates = secure(by_certificates).await;
    let check = |server_name: Option<&str>, of_strict: Option<&Issued>, of_lenient: &Issued| {
        let certificate = |issued: &Issued| issued.certificate.clone();
        for target in [&lenient, &by_certificates] {
            assert_eq!(shown(target, server_name), Ok(certificate(of_lenient)), "{server_name:?}");
        }
        match (of_strict, shown(&strict, server_name)) {
            (Some(issued), found) => assert_eq!(found, Ok(certificate(issued)), "{server_name:?}"),
            (None, Err(error)) => assert!(error.contains("AccessDenied"), "{server_name:?}: {error}"),
            (None, Ok(_)) => panic!("{server_name:?} is shown a certificate"),
        }
    };
    check(Some("shop.test"), Some(&shop), &shop);
    check(Some("SHOP.TEST"), Some(&shop), &shop);
    check(Some("one.api.test"), Some(&one_api), &one_api);
    check(Some("two.api.test"), Some(&apis), &apis);
    check(Some("a.two.api.test"), None, &default);
    check(Some("api.test"), None, &default);
    check(Some("elsewhere.test"), None, &default);
    check(None, None, &default);

    // And to Thalweg's client, which verifies the name.
    for (name, may) in [("shop.test", true), ("two.api.test", true), ("elsewhere.test", false)] {
        let tls = ClientTlsConfig::new().ca_certificate(authority.certificate()).domain_name(name);
        match connect(&lenient, tls).await {
            Ok(channel) => {
                let received = describe_connection(&channel).await.expect("a response");
                assert!(may && received.contains(&format!("h2 {name} ")), "{name}: {received}");
            }
            Err(error) => assert!(!may && error.to_string().contains("localhost"), "{name}: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_names_are_checked() {
    let authority = Authority::new();
    let folder = std::env::temp_dir().join(format!("thalweg-tls-its-names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let issue = |name: &str| authority.issue(name, |_| ());
    let (default, apis, told) = (issue("default.api.test"), issue("*.api.test"), issue("told.api.test"));
    let tls = ServerTlsConfig::new()
        .identity(default.identity())
        .identity_for_its_names(apis.write(&folder))
        .identity_for("told.api.test", told.identity())
        .reload_interval(Duration::ZERO);
    let target = secure(tls).await;
    let check = |server_name: &str, issued: &Issued| {
        assert_eq!(shown(&target, Some(server_name)).as_ref(), Ok(&issued.certificate), "{server_name}");
    };
    check("one.api.test", &apis);
    check("told.api.test", &told);
    check("default.api.test", &default);
    check("shop.test", &default);
    let shop = issue("shop.test");
    shop.write(&folder);
    check("shop.test", &shop);
    check("one.api.test", &default);
    // A certificate that would be rejected at startup changes nothing.
    for unfit in ["default.api.test", "127.0.0.1"] {
        issue(unfit).write(&folder);
        check("shop.test", &shop);
        check("default.api.test", &default);
    }
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_names_are_renewed_separately() {
    let authority = Authority::new();
    let folder = std::env::temp_dir().join(format!("thalweg-tls-names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let issue = |name: &str| authority.issue(name, |_| ());
    let (first, second) = (issue("files.test"), issue("live.test"));
    let live = LiveIdentity::new(second.identity());
    let tls = ServerTlsConfig::new()
        .identity_for("files.test", first.write(&folder))
        .identity_for("live.test", &live)
        .reload_interval(Duration::ZERO);
    let target = secure(tls).await;
    let check = |of_files: &Issued, of_live: &Issued| {
        assert_eq!(shown(&target, Some("files.test")).as_ref(), Ok(&of_files.certificate));
        assert_eq!(shown(&target, Some("live.test")).as_ref(), Ok(&of_live.certificate));
    };
    check(&first, &second);
    let next = issue("live.test");
    live.replace(next.identity());
    check(&first, &next);
    // A certificate for another name changes nothing.
    issue("elsewhere.test").write(&folder);
    check(&first, &next);
    let renewed = issue("files.test");
    renewed.write(&folder);
    check(&renewed, &next);
    std::fs::remove_dir_all(folder).expect("the folder");
}

/// Connects rustls's own client on a blocking socket.
fn alpn_client(target: &str, config: ClientConfig) -> StreamOwned<ClientConnection, TcpStream> {
    let socket = TcpStream::connect(target).expect("a listener");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    let name = "localhost".try_into().expect("a name");
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a configuration"), socket)
}

fn config(authority: &Authority, alpn: &[&str]) -> ClientConfig {
    let mut config = tls12(authority);
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// Reads until the server closes the connection.
fn read_to_end(mut stream: impl Read) -> (Vec<u8>, Option<std::io::Error>) {
    let mut received = Vec::new();
    let outcome = stream.read_to_end(&mut received);
    (received, outcome.err())
}

#[tokio::test(flavor = "multi_thread")]
async fn server_requires_http2_by_alpn() {
    let authority = Authority::new();
    let target = secure(authority.identity("localhost").into()).await;
    let check = |alpn: &[&str], expected: Option<&str>| {
        let mut stream = alpn_client(&target, config(&authority, alpn));
        let wrote = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        let mut first = [0; 9];
        let outcome = wrote.and_then(|()| stream.read_exact(&mut first));
        match expected {
            // SETTINGS
            None => assert_eq!(first[3], 4, "{alpn:?}: {outcome:?}"),
            Some(part) => {
                let error = outcome.expect_err("no HTTP/2").to_string();
                assert!(error.contains(part), "{alpn:?}: {error}");
            }
        }
    };
    check(&["h2"], None);
    check(&["http/1.1", "h2"], None);
    check(&["http/1.1"], Some("NoApplicationProtocol"));
    // Without ALPN there is no protocol: the server closes the connection properly (RFC 8446 §6.1).
    let mut stream = alpn_client(&target, config(&authority, &[]));
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).expect("a handshake");
    }
    let (received, error) = read_to_end(stream);
    assert!(received.is_empty() && error.is_none(), "{received:?} {error:?}");
}

/// Accepts one TLS connection with rustls's own server and passes it to `serve`.
fn alpn_server(
    identity: &Issued,
    alpn: &[&str],
    serve: impl FnOnce(StreamOwned<rustls::ServerConnection, TcpStream>) + Send + 'static,
) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = listener.local_addr().expect("an address").to_string();
    let key = PrivateKeyDer::Pkcs8(identity.key.clone().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], key)
        .expect("an identity");
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        let (socket, _) = listener.accept().expect("a client");
        let session = rustls::ServerConnection::new(config).expect("a session");
        serve(StreamOwned::new(session, socket));
    });
    target
}

const SERVER_PREFACE: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn client_requires_http2_by_alpn() {
    let authority = Authority::new();
    let identity = authority.issue("localhost", |_| ());
    let speak = |mut stream: StreamOwned<rustls::ServerConnection, TcpStream>| {
        let _ = stream.write_all(SERVER_PREFACE);
        read_to_end(stream);
    };
    let target = alpn_server(&identity, &[], speak);
    let error = connect(&target, trusting(&authority)).await.expect_err("no ALPN").to_string();
    assert!(error.contains("did not negotiate HTTP/2 by ALPN"), "{error}");
    let target = alpn_server(&identity, &[], speak);
    connect(&target, trusting(&authority).assume_http2(true)).await.expect("a connection");
    let target = alpn_server(&identity, &["http/1.1"], speak);
    let error = connect(&target, trusting(&authority)).await.expect_err("another protocol").to_string();
    assert!(error.contains("did not negotiate HTTP/2 by ALPN"), "{error}");
}

#[tokio::test]
async fn clean_tls_end_differs_from_truncation() {
    let authority = Authority::new();
    let identity = authority.issue("localhost", |_| ());
    for (sends_close_notify, part) in [(true, "closed the connection"), (false, "without TLS's close_notify")]
    {
        let target = alpn_server(&identity, &["h2"], move |mut stream| {
            stream.write_all(SERVER_PREFACE).expect("a client");
            // The request has arrived and gets no response.
            let mut byte = [0];
            let mut seen = Vec::new();
            while !seen.windows(4).any(|four| four == b"done") {
                stream.read_exact(&mut byte).expect("more");
                seen.push(byte[0]);
            }
            if sends_close_notify {
                stream.conn.send_close_notify();
            }
            stream.flush().expect("a client");
        });
        let channel = connect(&target, trusting(&authority)).await.expect("a connection");
        let status = soon(echo(&channel, raw("done"))).await.expect_err("no response");
        assert!(status.message().contains(part), "{sends_close_notify}: {status:?}");
        assert_eq!(status.code(), thalweg::Code::Unavailable);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plaintext_peer_is_named_and_alerted() {
    let authority = Authority::new();
    let (plain, tls) = (start(server()).await, secure(authority.identity("localhost").into()).await);
    let error = soon(Channel::builder(&tls).connect()).await.expect_err("the server wants TLS").to_string();
    assert!(error.contains("the server uses TLS, and this channel does not"), "{error}");
    let error = connect(&plain, trusting(&authority)).await.expect_err("the server has no TLS").to_string();
    assert!(error.contains("the server speaks HTTP/2 without TLS"), "{error}");

    // An alert (21) comes back, then the end.
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &vec![0xff; 100_000], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut socket = TcpStream::connect(&tls).expect("a listener");
        let _ = socket.write_all(garbage);
        let (received, _) = read_to_end(socket);
        assert!(received.is_empty() || received[0] == 21, "{received:?}");
    }
    let http1 = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = http1.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let (mut socket, _) = http1.accept().expect("a client");
        socket.read_exact(&mut [0; 100]).expect("a hello");
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").expect("a client");
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let error = connect(&target, trusting(&authority)).await.expect_err("no TLS").to_string();
    assert!(error.contains("the server speaks HTTP/1.x without TLS"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_handshakes_time_out() {
    let authority = Authority::new();
    let tls = || ServerTlsConfig::new().identity(authority.identity("localhost"));
    // By time.
    let target = secure(tls().timeout(Duration::from_millis(200))).await;
    let mut silent = TcpStream::connect(&target).expect("a listener");
    silent.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    assert_eq!(silent.read(&mut [0]).expect("the end"), 0);
    // By number: the oldest goes first.
    let target = secure(tls().timeout(Duration::from_secs(3600)).max_handshakes(2)).await;
    let mut waiting: Vec<TcpStream> = Vec::new();
    for _ in 0..2 {
        waiting.push(TcpStream::connect(&target).expect("a listener"));
    }
    let channel = connect(&target, trusting(&authority)).await.expect("one that is honest");
    describe_connection(&channel).await.expect("a response");
    waiting[0].set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    assert_eq!(waiting[0].read(&mut [0]).expect("the end"), 0);
    waiting[1].set_nonblocking(true).expect("an option");
    assert_eq!(waiting[1].read(&mut [0]).expect_err("it waits").kind(), std::io::ErrorKind::WouldBlock);
}

/// Bytes in TLS buffers count towards the memory limit of all connections.
#[tokio::test(flavor = "multi_thread")]
async fn handshakes_over_memory_limit_are_closed() {
    let authority = Authority::new();
    let tls = || ServerTlsConfig::new().identity(authority.identity("localhost"));
    // A ClientHello of 64 KiB without its last bytes: three complete records and a part of the fourth.
    let record = |first: &[u8]| [&[22, 3, 1, 0x40, 0], first, &vec![0; (16 << 10) - first.len()]].concat();
    let hello =
        [record(&[1, 0, 0xff, 0xf0]), record(&[]), record(&[]), record(&[])[..15 << 10].to_vec()].concat();
    let cut_of = async |max_memory: usize| {
        let timeout = Duration::from_secs(3600);
        let target = start(server().max_memory(max_memory).tls(tls().timeout(timeout))).await;
        let mut hoards: Vec<TcpStream> = Vec::new();
        for _ in 0..40 {
            let mut socket = TcpStream::connect(&target).expect("a listener");
            socket.write_all(&hello).expect("a server");
            socket.set_nonblocking(true).expect("an option");
            hoards.push(socket);
        }
        // The server checks connections once a second.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        let channel = connect(&target, trusting(&authority)).await.expect("one that is honest");
        describe_connection(&channel).await.expect("a response");
        let waits = |socket: &mut TcpStream| {
            socket.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        hoards.iter_mut().filter_map(|socket| (!waits(socket)).then_some(())).count()
    };
    assert_eq!(cut_of(64 << 20).await, 0);
    // 40 × 63 KiB are held, so 24 connections must be cut, and no more than necessary.
    let cut = cut_of(1 << 20).await;
    assert!((20..=26).contains(&cut), "{cut} were cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_count_as_connections() {
    let authority = Authority::new();
    let tls = ServerTlsConfig::new().identity(authority.identity("localhost"));
    let tls = tls.timeout(Duration::from_secs(3600));
    let target = start(server().max_connections(1).tls(tls)).await;
    let mut silent = TcpStream::connect(&target).expect("a listener");
    silent.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
    // The first attempt finds no room, but causes the server to make some.
    soon(async {
        while connect(&target, trusting(&authority)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(silent.read(&mut [0]).expect("the end"), 0);
}

#[tokio::test]
async fn shutdown_does_not_wait_for_handshakes() {
    let authority = Authority::new();
    let server = server().tls(authority.identity("localhost"));
    let server = server.bind(&["127.0.0.1:0".parse().expect("an address")]).await.expect("a port");
    let target = server.local_addresses()[0].to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve_until(async move { stopped.await.unwrap_or(()) }));
    let channel = connect(&target, trusting(&authority)).await.expect("a connection");
    let silent = tokio::net::TcpStream::connect(&target).await.expect("a listener");
    describe_connection(&channel).await.expect("a response");
    stop.send(()).expect("it serves");
    soon(serving).await.expect("no panic").expect("no error");
    drop(silent);
}

/// TLS works over any stream, whatever space it has per write.
#[tokio::test]
async fn tls_works_over_custom_streams() {
    let authority = Authority::new();
    for space in [1, 7, 1000, 64 * 1024] {
        let identity = authority.identity("localhost");
        let channel = Channel::builder("memory:1")
            .authority("localhost")
            .tls(ClientTlsConfig::new().ca_certificate(authority.certificate()));
        let connector = move || {
            let identity = identity.clone();
            async move {
                let (client, theirs) = tokio::io::duplex(space);
                tokio::spawn(server().tls(identity).serve_connection(theirs));
                Ok(client)
            }
        };
        let channel = soon(channel.connector(connector).connect()).await.expect("a connection");
        let message = raw(vec![5; 20_000]);
        assert_eq!(soon(echo(&channel, message.clone())).await.expect("a response"), message);
        let received = describe_connection(&channel).await.expect("a response");
        assert!(received.starts_with("TLSv1.3"), "{received}");
    }
}

#[tokio::test]
async fn connection_info_follows_setting() {
    let authority = Authority::new();
    let identity = || authority.identity("localhost");
    let check = async |server: ServerBuilder, tls: Option<ClientTlsConfig>, expected: &str| {
        let target = start(server).await;
        let builder = Channel::builder(&target);
        let builder = match tls {
            Some(tls) => builder.tls(tls),
            None => builder,
        };
        let channel = soon(builder.connect()).await.expect("a connection");
        let received = describe_connection(&channel).await.expect("a response");
        assert!(received.starts_with(expected), "{received}");
    };
    check(server(), None, "plain false").await;
    check(server().connection_info(true), None, "plain true").await;
    let secure = || server().tls(identity());
    check(secure(), Some(trusting(&authority)), "TLSv1.3").await;
    check(secure().connection_info(false), Some(trusting(&authority)), "plain false").await;
}

/// Encodes a ClientHello of `version` with these cipher suites as a record (RFC 5246 §7.4.1.2).
fn hello(version: u16, suites: &[u16]) -> Vec<u8> {
    fn sized(len_bytes: usize, body: &[u8]) -> Vec<u8> {
        [&body.len().to_be_bytes()[8 - len_bytes..], body].concat()
    }
    let extension = |kind: u16, body: &[u8]| [&kind.to_be_bytes()[..], &sized(2, body)].concat();
    let list = |numbers: &[u16]| {
        sized(2, &numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>())
    };
    let extensions = [
        // supported_groups: X25519, P-256; signature_algorithms: ECDSA and RSA with SHA-256; ALPN: h2.
        extension(10, &list(&[29, 23])),
        extension(11, &[1, 0]),
        extension(13, &list(&[0x0403, 0x0804, 0x0401])),
        extension(16, &sized(2, &sized(1, b"h2"))),
        extension(23, &[]),
    ]
    .concat();
    let body = [
        &version.to_be_bytes()[..],
        &[7; 32],
        &sized(1, &[]),
        &list(suites),
        &[1, 0],
        &sized(2, &extensions),
    ]
    .concat();
    let message = [&[1][..], &sized(3, &body)].concat();
    [&[22, 3, 1][..], &sized(2, &message)].concat()
}

/// RFC 9113 §9.2: HTTP/2 requires TLS 1.2 or later, and none of the cipher suites of appendix A.
#[tokio::test(flavor = "multi_thread")]
async fn old_versions_and_weak_ciphers_are_rejected() {
    const HANDSHAKE_FAILURE: u8 = 40;
    const PROTOCOL_VERSION: u8 = 70;
    let authority = Authority::new();
    let target = secure(authority.identity("localhost").into()).await;
    let newest = ServerTlsConfig::new().identity(authority.identity("localhost"));
    let newest = secure(newest.min_version(TlsVersion::Tls13)).await;
    // Checks the type of the first record in response and, for an alert, its description.
    let check = |target: &str, version: u16, suites: &[u16], expected: (u8, Option<u8>)| {
        let mut socket = TcpStream::connect(target).expect("a listener");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("an option");
        socket.write_all(&hello(version, suites)).expect("a server");
        let mut response = [0; 7];
        socket.read_exact(&mut response).expect("a response");
        let received = (response[0], (response[0] == 21).then_some(response[6]));
        assert_eq!(received, expected, "{version:x} {suites:x?}");
    };
    let good = [0xc02b, 0xc02f];
    check(&target, 0x0303, &good, (22, None));
    for version in [0x0300, 0x0301, 0x0302] {
        check(&target, version, &good, (21, Some(PROTOCOL_VERSION)));
    }
    check(&newest, 0x0303, &good, (21, Some(PROTOCOL_VERSION)));
    // RC4, 3DES, CBC with RSA and with ECDHE, GCM without an ephemeral key, DHE, no encryption, anonymous.
    for suite in [0x0005, 0x000a, 0x002f, 0x0035, 0xc009, 0xc013, 0xc027, 0x009c, 0x009e, 0x0002, 0xc018] {
        check(&target, 0x0303, &[suite], (21, Some(HANDSHAKE_FAILURE)));
    }
    // All numbers of TLS 1.2 and older suites except ECDHE with AES-GCM and with ChaCha20-Poly1305.
    let taken = [0xc02b, 0xc02c, 0xc02f, 0xc030, 0xcca8, 0xcca9];
    let numbers = (0x0001..=0x00c7).chain(0xc001..=0xc0b5).chain(0xcca8..=0xccae).chain(0xd001..=0xd005);
    let weak: Vec<u16> = numbers.filter(|number| !taken.contains(number)).collect();
    check(&target, 0x0303, &weak, (21, Some(HANDSHAKE_FAILURE)));
}

/// A client that always has more to send; it reports how much is read at once.
struct Torrent {
    bytes: std::io::Cursor<Vec<u8>>,
    read: Arc<AtomicUsize>,
}

impl tokio::io::AsyncRead for Torrent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let mut cx = Context::from_waker(Waker::noop());
        let read = tokio::io::AsyncRead::poll_read(Pin::new(&mut self.bytes), &mut cx, buf);
        self.read.fetch_add(buf.filled().len() - before, Ordering::SeqCst);
        read
    }
}

impl tokio::io::AsyncWrite for Torrent {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A ClientHello of 64 KiB with one record per byte: parsing it takes time, so the server yields in between.
#[tokio::test]
async fn handshake_yields_to_other_tasks() {
    let authority = Authority::new();
    let hello = [&[1, 0, 0xff, 0xff][..], &vec![3; 0xfff0]].concat();
    let bytes = hello.iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect::<Vec<u8>>();
    let read = Arc::new(AtomicUsize::new(0));
    let torrent = Torrent { bytes: std::io::Cursor::new(bytes), read: Arc::clone(&read) };
    let server = server().tls(authority.identity("localhost"));
    let serving = tokio::spawn(server.serve_connection(torrent));
    let (seen, at_once) = tokio::spawn(async move {
        let (mut seen, mut at_once) = (0, 0);
        while !serving.is_finished() {
            tokio::task::yield_now().await;
            let now = read.load(Ordering::SeqCst);
            (seen, at_once) = (now, at_once.max(now - seen));
        }
        (seen, at_once)
    })
    .await
    .expect("no panic");
    assert!(seen > 64 << 10, "{seen} bytes in all");
    assert!(at_once <= 16 << 10, "{at_once} bytes at once");
}
