//! Tests decryption with key logs of rustls clients and servers.

use std::fmt::{self, Write as _};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, Connection, KeyLog as Log, RootCertStore, ServerConfig, ServerConnection,
    SupportedCipherSuite,
};
use thalweg_inspect::capture::{Call, KeyLog, Limits, Summary, read_with_keys};

use crate::support::{CLIENT, SERVER, Speaker, Tcp, described, read_all};

/// Collects the lines of a key log.
#[derive(Default)]
struct Lines(Mutex<String>);

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lines")
    }
}

impl Log for Lines {
    fn log(&self, label: &str, random: &[u8], secret: &[u8]) {
        let mut lines = self.0.lock().unwrap();
        *lines += label;
        for bytes in [random, secret] {
            *lines += " ";
            for byte in bytes {
                write!(lines, "{byte:02x}").unwrap();
            }
        }
        *lines += "\n";
    }
}

/// Both ends of a TLS connection, and its packets.
struct Pair {
    tcp: Tcp,
    ends: [Connection; 2],
    log: Arc<Lines>,
}

impl Pair {
    fn new(suite: SupportedCipherSuite) -> Self {
        let provider =
            Arc::new(CryptoProvider { cipher_suites: vec![suite], ..aws_lc_rs::default_provider() });
        let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = issued.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(issued.signing_key.serialize_der().into());
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[suite.version()])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[suite.version()])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let log = Arc::new(Lines::default());
        client.key_log = log.clone();
        let name = ServerName::try_from("localhost").unwrap();
        let ends = [
            ClientConnection::new(Arc::new(client), name).unwrap().into(),
            ServerConnection::new(Arc::new(server)).unwrap().into(),
        ];
        let mut tcp = Tcp::new();
        tcp.open();
        let mut pair = Self { tcp, ends, log };
        pair.exchange();
        pair
    }

    /// Transfers data until both ends are idle.
    fn exchange(&mut self) {
        loop {
            let mut has_moved = false;
            for from in [CLIENT, SERVER] {
                let mut bytes = Vec::new();
                while self.ends[from].wants_write() {
                    self.ends[from].write_tls(&mut bytes).unwrap();
                }
                // Segments end at arbitrary places.
                for piece in bytes.chunks(1000) {
                    has_moved = true;
                    self.tcp.send(from, piece);
                    let mut rest = piece;
                    while !rest.is_empty() {
                        self.ends[1 - from].read_tls(&mut rest).unwrap();
                        self.ends[1 - from].process_new_packets().unwrap();
                        // Empties the small receive buffer. The error when it is empty is ignored.
                        let _ = self.ends[1 - from].reader().read_to_end(&mut Vec::new());
                    }
                }
            }
            if !has_moved {
                return;
            }
        }
    }

    fn say(&mut self, from: usize, bytes: &[u8]) {
        self.ends[from].writer().write_all(bytes).unwrap();
        self.exchange();
    }

    /// Makes a call with a response longer than a record. Returns its description.
    fn call(&mut self) -> String {
        let (mut client, mut server) = (Speaker::client(), Speaker::server());
        client.request(1, "/shop.Orders/Get").message(1, b"\x08\x01", true);
        self.say(CLIENT, &client.take());
        let long = vec![b'x'; 40_000];
        server.response(1).message(1, &long, false);
        self.say(SERVER, &server.take());
        self.refresh_keys();
        server.status(1, "0");
        self.say(SERVER, &server.take());
        self.tcp.close();
        format!(r"1 shop.Orders/Get >\x08\x01 <{} Some(0) Trailers ", "x".repeat(40_000))
    }

    fn refresh_keys(&mut self) {
        if self.ends[SERVER].protocol_version() == Some(rustls::ProtocolVersion::TLSv1_3) {
            self.ends[SERVER].refresh_traffic_keys().unwrap();
            self.exchange();
        }
    }

    fn read(&self, log: &str) -> (Vec<Call>, Summary) {
        let mut calls = Vec::new();
        let keys = KeyLog::parse(log).unwrap();
        let summary = read_with_keys(&self.tcp.pcap()[..], &Limits::default(), &keys, |call| {
            calls.push(call);
            true
        });
        (calls, summary.unwrap())
    }

    fn log(&self) -> String {
        self.log.0.lock().unwrap().clone()
    }
}

#[test]
fn each_cipher_suite_is_decrypted() {
    for suite in aws_lc_rs::ALL_CIPHER_SUITES.iter().copied() {
        // The certificate has an ECDSA key.
        if suite.tls13().is_none() && format!("{:?}", suite.suite()).contains("RSA") {
            continue;
        }
        let mut pair = Pair::new(suite);
        let expected = pair.call();
        let (calls, summary) = pair.read(&pair.log());
        assert_eq!(described(&calls), [expected], "{:?}: {summary:?}", suite.suite());
        assert_eq!((summary.http2, summary.tls), (1, 0), "{:?}", suite.suite());
        assert!(calls[0].notes.is_empty(), "{:?}", calls[0].notes);
    }
}

#[test]
fn connection_without_secrets_is_counted_as_tls() {
    let mut pair = Pair::new(aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256);
    pair.call();
    let (calls, summary) = read_all(&pair.tcp.pcap());
    assert!(calls.is_empty());
    assert_eq!((summary.tls, summary.http2, summary.tls_not_decrypted), (1, 0, None));
    // Handshake secrets are not sufficient, and wrong secrets decrypt nothing.
    let log = pair.log();
    let handshake: Vec<&str> = log.lines().filter(|line| line.contains("HANDSHAKE")).collect();
    let handshake = handshake.join("\n");
    assert_eq!(pair.read(&handshake).1.tls_not_decrypted, None);
    let wrong = |line: &str| {
        let last = if line.ends_with("00") { "01" } else { "00" };
        [&line[..line.len() - 2], last].concat()
    };
    let wrong = log.lines().map(wrong).collect::<Vec<_>>().join("\n");
    let (calls, summary) = pair.read(&wrong);
    assert!(calls.is_empty());
    assert_eq!((summary.tls, summary.tls_not_decrypted.as_deref()), (1, Some("failed to decrypt a record")));
}

#[test]
fn gap_stops_decryption_of_its_direction() {
    let mut pair = Pair::new(aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384);
    pair.call();
    // The server's last record, with the status.
    let last = pair.tcp.packets.iter().rposition(|(_, packet)| packet.len() > 70).unwrap();
    pair.tcp.packets.remove(last);
    let (calls, summary) = pair.read(&pair.log());
    assert_eq!((calls.len(), summary.gaps), (1, 1));
    assert_eq!((calls[0].status(), calls[0].response.message_count), (None, 1));
    assert!(calls[0].notes[0].contains("not in the capture"), "{:?}", calls[0].notes);
}
