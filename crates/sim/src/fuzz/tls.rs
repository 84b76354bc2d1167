//! Any bytes from one end of a TLS connection to the other: handshakes, records, and invalid data.

mod seeded;
mod wire;

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use thalweg::tls::rustls::client::Resumption;
use thalweg::tls::rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use thalweg::tls::testing::{client_stream, server_stream};
use thalweg::tls::{CertificateDer, ClientTlsConfig, PrivateKeyDer, ServerTlsConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};
use tokio::runtime::{Builder, Runtime};

use super::features::{Features, INPUT_LEN_MAX, feature};
use crate::pattern;
use crate::random::Random;
use seeded::{Side, provider, seed};
use wire::{Tee, Wire};

/// The lowest bits of an input's first byte: the sender, and the receiver's TLS version.
const FROM_SERVER: u8 = 1;
const RECEIVER_TLS12: u8 = 2;
/// An input's second byte says how often its end is repeated, up to a maximum length: some connections are longer than
/// an input.
const REPEATS_MAX: usize = 64;
const REPEATED_LEN_MAX: usize = 4 * 1024;
/// Bytes before the sent data.
pub(super) const MODE_LEN: usize = 2;
/// In virtual time without waiting: a stream that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(7200);
/// Three buffers of the stream, each for sixteen records of maximum size plus overhead.
const BUFFERED_BYTES_MAX: usize = 3 * (16 * (16 * 1024 + 64) + 3 * 1024);
/// Seed of the receiver; a recorded sender uses its session's seed.
const RECEIVER_SEED: u64 = 0;

/// One end's side of a recorded connection.
#[derive(Debug)]
struct Session {
    mode: u8,
    sent: Vec<u8>,
    /// Plaintext that it sent.
    plain: Vec<u8>,
}

/// One end's view of an input.
#[derive(Debug)]
struct Outcome {
    has_shaken_hands: bool,
    plain: Vec<u8>,
    /// Ok for an authenticated end of the stream (close_notify), else the error.
    end: Result<(), String>,
    /// Bytes that this end sent.
    sent: Vec<u8>,
}

/// Checks, for any bytes in any pieces:
///
/// - nothing panics or hangs, and memory stays within its bound;
/// - the plaintext is a prefix of a recorded session's, and the stream ends cleanly only if it is all of it;
/// - the output consists of records.
pub(super) fn target(data: &[u8]) -> Features {
    let [mode, repeated, input @ ..] = data else { return Features::new() };
    let input = &input[..input.len().min(INPUT_LEN_MAX)];
    let end = &input[input.len() - input.len().min(REPEATED_LEN_MAX)..];
    let sent = [input, &end.repeat(usize::from(*repeated) % REPEATS_MAX)].concat();

    let outcome = run_receiver(*mode, &sent, Random::new(feature(data)));
    let other_outcome = run_receiver(*mode, &sent, Random::new(!feature(data)));
    // An error after the handshake may already be detected during it.
    assert_eq!(outcome.end.is_ok(), other_outcome.end.is_ok(), "{:?}, {:?}", outcome.end, other_outcome.end);
    for outcome in [&outcome, &other_outcome] {
        assert_recorded_plaintext(outcome, sessions());
        assert_records(&outcome.sent);
    }
    if let Some(session) = sessions().iter().find(|session| session.mode == *mode & 3 && session.sent == sent)
    {
        assert_eq!(outcome.end, Ok(()), "a recorded connection is the same again");
        assert_eq!(outcome.plain, session.plain);
    }
    // Ignore digits quoted from the input.
    let words = |text: &String| text.chars().filter(|c| !c.is_ascii_digit()).take(100).collect::<String>();
    let records = outcome.sent.len().min(4000) / 100;
    let kind = (*mode & 3, outcome.has_shaken_hands, outcome.end.as_ref().map_err(words));
    Features::from([feature((&kind, records)), feature((kind, outcome.plain.len().min(2)))])
}

/// Checks that a recorded session sent this plaintext, all of it if the stream ended cleanly.
fn assert_recorded_plaintext(outcome: &Outcome, sessions: &[Session]) {
    let matches = |session: &&Session| match outcome.end {
        Ok(()) => session.plain == outcome.plain,
        Err(_) => session.plain.starts_with(&outcome.plain),
    };
    assert!(sessions.iter().any(|session| matches(&session)), "no recorded session sent this: {outcome:?}");
}

/// Checks TLS records (RFC 8446 §5.1). The last may be incomplete: a failed stream does not wait until it is written.
fn assert_records(mut sent: &[u8]) {
    while let [kind, 3, _, high, low, rest @ ..] = sent {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        assert!((20..=23).contains(kind) && len <= 16 * 1024 + 256, "no record: {:02x?}", &sent[..5]);
        sent = rest.get(len..).unwrap_or_default();
    }
    assert!(sent.len() < 5, "no record: {sent:02x?}");
}

/// One end receives `sent`, in pieces.
fn run_receiver(mode: u8, sent: &[u8], mut random: Random) -> Outcome {
    let (buffered_bytes, log) = (Arc::new(AtomicUsize::new(0)), wire::Log::default());
    let wire = Wire::new(sent, random.fork(), Arc::clone(&buffered_bytes), BUFFERED_BYTES_MAX, log.clone());
    let (plain, end) = runtime().block_on(async {
        let receiving = async {
            let version = version_of(mode);
            if mode & FROM_SERVER == 0 {
                seed(Side::Server, RECEIVER_SEED);
                match server_stream(server(version), wire, &buffered_bytes).await {
                    Ok(stream) => read_until_end(stream, random).await,
                    Err(error) => (None, Err(error)),
                }
            } else {
                seed(Side::Client, RECEIVER_SEED);
                match client_stream(client(version), "localhost", wire, &buffered_bytes).await {
                    Ok(stream) => read_until_end(stream, random).await,
                    Err(error) => (None, Err(error)),
                }
            }
        };
        tokio::time::timeout(HANGS_AFTER, receiving).await.expect("a stream hangs")
    });
    Outcome { has_shaken_hands: plain.is_some(), plain: plain.unwrap_or_default(), end, sent: log.take() }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime without I/O")
}

/// Reads to the end and sometimes writes, like a driver.
async fn read_until_end(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    mut random: Random,
) -> (Option<Vec<u8>>, Result<(), String>) {
    let (mut plain, mut space) = (Vec::new(), vec![0; 64 * 1024]);
    let end = loop {
        let space_len = 1 + random.size(space.len() - 1);
        match stream.read(&mut space[..space_len]).await {
            Ok(0) => break Ok(()),
            Ok(read) => {
                plain.extend_from_slice(&space[..read]);
                // A peer that only sends may not read it.
                let _ = stream.write_all(&space[..read.min(100)]).await;
            }
            Err(error) => {
                // Reading on after an error returns it again.
                let _ = stream.read(&mut space).await;
                break Err(error.to_string());
            }
        }
    };
    let _ = stream.shutdown().await;
    (Some(plain), end)
}

pub(super) fn corpus() -> Vec<Vec<u8>> {
    let input = |session: &Session| [&[session.mode, 0], &session.sent[..]].concat();
    let repeated = |session: &Session| [&[session.mode, 40], &session.sent[..]].concat();
    sessions().iter().flat_map(|session| [input(session), repeated(session)]).collect()
}

/// Sizes of the writes of recorded sessions, one list per session.
const WRITES: [&[usize]; 3] = [&[24, 9, 300], &[1; 100], &[9000, 1, 2000]];

fn sessions() -> &'static [Session] {
    static RECORDED: OnceLock<Vec<Session>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let modes = [0, FROM_SERVER, RECEIVER_TLS12, FROM_SERVER | RECEIVER_TLS12];
        let plans = modes.iter().flat_map(|mode| WRITES.map(|writes| (*mode, writes)));
        (1..).zip(plans).map(|(number, (mode, writes))| record(mode, writes, number)).collect()
    })
}

/// Records a connection that sends the pattern of `number`; the other end uses the receiver's seed.
fn record(mode: u8, writes: &[usize], number: u64) -> Session {
    let plain = pattern::slice_of(number, 0, writes.iter().sum()).to_vec();
    let log = wire::Log::default();
    let is_server = mode & FROM_SERVER != 0;
    let sender = if is_server { Side::Server } else { Side::Client };
    seed(Side::Client, RECEIVER_SEED);
    seed(Side::Server, RECEIVER_SEED);
    seed(sender, number);
    let (near, far) = duplex(1 << 20);
    let tee = |end, side| Tee::new(end, (side == sender).then(|| log.clone()));
    let (near, far) = (tee(near, Side::Client), tee(far, Side::Server));
    let (version, buffered_bytes) = (version_of(mode), Arc::new(AtomicUsize::new(0)));
    runtime().block_on(async {
        let calling = async {
            let stream =
                client_stream(client(version), "localhost", near, &buffered_bytes).await.expect("a server");
            run_end(stream, if is_server { None } else { Some((&plain, writes)) }).await;
        };
        let serving = async {
            let stream = server_stream(server(version), far, &buffered_bytes).await.expect("a client");
            run_end(stream, if is_server { Some((&plain, writes)) } else { None }).await;
        };
        tokio::join!(calling, serving);
    });
    Session { mode, sent: log.take(), plain }
}

async fn run_end(mut stream: impl AsyncRead + AsyncWrite + Unpin, writes_of: Option<(&[u8], &[usize])>) {
    if let Some((mut plain, writes)) = writes_of {
        for len in writes {
            let (part, rest) = plain.split_at(*len);
            stream.write_all(part).await.expect("the other end reads");
            plain = rest;
        }
    }
    stream.shutdown().await.expect("pipes don't fail");
    stream.read_to_end(&mut Vec::new()).await.expect("the other end closes, too");
}

fn version_of(mode: u8) -> &'static SupportedProtocolVersion {
    if mode & RECEIVER_TLS12 == 0 { &version::TLS13 } else { &version::TLS12 }
}

fn client(version: &'static SupportedProtocolVersion) -> ClientTlsConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate().0.clone()).expect("a certificate");
    let builder = ClientConfig::builder_with_provider(provider(Side::Client));
    let builder = builder.with_protocol_versions(&[version]).expect("a version of the provider's");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    ClientTlsConfig::from_rustls(Arc::new(config))
}

fn server(version: &'static SupportedProtocolVersion) -> ServerTlsConfig {
    let (certificate, key) = certificate();
    let builder = ServerConfig::builder_with_provider(provider(Side::Server));
    let builder = builder.with_protocol_versions(&[version]).expect("a version of the provider's");
    let key = PrivateKeyDer::Pkcs8(key.clone().into());
    let config = builder.with_no_client_auth().with_single_cert(vec![certificate.clone()], key);
    // Hangs must be detected by the test, not by this timeout.
    let tls = ServerTlsConfig::from_rustls(Arc::new(config.expect("a pair")));
    tls.timeout(2 * HANGS_AFTER)
}

/// A certificate for localhost and its key. Always the same: Ed25519 signatures are deterministic.
fn certificate() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static CERTIFICATE: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    CERTIFICATE.get_or_init(|| {
        // PKCS #8 of Ed25519 (RFC 8410 §7), before the 32 bytes of the key.
        let prefix = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
        let der = [&prefix[..], &[7; 32]].concat();
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&der.clone().into(), &PKCS_ED25519).expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        (params.self_signed(&key).expect("a certificate").der().clone(), der)
    })
}
