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
const OF_TLS12: u8 = 2;
/// An input's second byte says how often its end is repeated, up to a maximum length: some connections are longer than
/// an input.
const AGAIN_MAX: usize = 64;
const AGAIN_LEN_MAX: usize = 4 * 1024;
/// Bytes before the sent data.
pub(super) const HEAD_LEN: usize = 2;
/// In virtual time without waiting: a stream that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(7200);
/// Three buffers of the stream, each for sixteen records of maximum size plus overhead.
const HELD_MAX: usize = 3 * (16 * (16 * 1024 + 64) + 3 * 1024);
/// Seed of the receiver; a recorded sender uses its session's seed.
const HEARER_SEED: u64 = 0;

/// One end's side of a recorded connection.
#[derive(Debug)]
struct Session {
    head: u8,
    said: Vec<u8>,
    /// Plaintext that it sent.
    plain: Vec<u8>,
}

/// One end's view of an input.
#[derive(Debug)]
struct Heard {
    has_shaken_hands: bool,
    plain: Vec<u8>,
    /// Ok for an authenticated end of the stream (close_notify), else the error.
    end: Result<(), String>,
    /// Bytes that this end sent.
    said: Vec<u8>,
}

/// Checks, for any bytes in any pieces:
///
/// - nothing panics or hangs, and memory stays within its bound;
/// - the plaintext is a prefix of a recorded session's, and the stream ends cleanly only if it is all of it;
/// - the output consists of records.
pub(super) fn target(data: &[u8]) -> Features {
    let [head, again, input @ ..] = data else { return Features::new() };
    let input = &input[..input.len().min(INPUT_LEN_MAX)];
    let end = &input[input.len() - input.len().min(AGAIN_LEN_MAX)..];
    let said = [input, &end.repeat(usize::from(*again) % AGAIN_MAX)].concat();

    let heard = hear(*head, &said, Random::new(feature(data)));
    let otherwise = hear(*head, &said, Random::new(!feature(data)));
    // An error after the handshake may already be detected during it.
    assert_eq!(heard.end.is_ok(), otherwise.end.is_ok(), "{:?}, {:?}", heard.end, otherwise.end);
    for heard in [&heard, &otherwise] {
        assert_heard(heard, sessions());
        assert_records(&heard.said);
    }
    if let Some(session) = sessions().iter().find(|session| session.head == *head & 3 && session.said == said)
    {
        assert_eq!(heard.end, Ok(()), "a recorded connection is the same again");
        assert_eq!(heard.plain, session.plain);
    }
    // Ignore digits quoted from the input.
    let words = |text: &String| text.chars().filter(|c| !c.is_ascii_digit()).take(100).collect::<String>();
    let records = heard.said.len().min(4000) / 100;
    let outcome = (*head & 3, heard.has_shaken_hands, heard.end.as_ref().map_err(words));
    Features::from([feature((&outcome, records)), feature((outcome, heard.plain.len().min(2)))])
}

/// Checks that a recorded session sent this plaintext, all of it if the stream ended cleanly.
fn assert_heard(heard: &Heard, sessions: &[Session]) {
    let said_it = |session: &&Session| match heard.end {
        Ok(()) => session.plain == heard.plain,
        Err(_) => session.plain.starts_with(&heard.plain),
    };
    assert!(sessions.iter().any(|session| said_it(&session)), "nobody has said this: {heard:?}");
}

/// Checks TLS records (RFC 8446 §5.1). The last may be incomplete: a failed stream does not wait until it is written.
fn assert_records(mut said: &[u8]) {
    while let [kind, 3, _, high, low, rest @ ..] = said {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        assert!((20..=23).contains(kind) && len <= 16 * 1024 + 256, "no record: {:02x?}", &said[..5]);
        said = rest.get(len..).unwrap_or_default();
    }
    assert!(said.len() < 5, "no record: {said:02x?}");
}

/// One end receives `said`, in pieces.
fn hear(head: u8, said: &[u8], mut random: Random) -> Heard {
    let (held, log) = (Arc::new(AtomicUsize::new(0)), wire::Log::default());
    let wire = Wire::new(said, random.fork(), Arc::clone(&held), HELD_MAX, log.clone());
    let (plain, end) = runtime().block_on(async {
        let hearing = async {
            let version = version_of(head);
            if head & FROM_SERVER == 0 {
                seed(Side::Server, HEARER_SEED);
                match server_stream(server(version), wire, &held).await {
                    Ok(stream) => listen(stream, random).await,
                    Err(error) => (None, Err(error)),
                }
            } else {
                seed(Side::Client, HEARER_SEED);
                match client_stream(client(version), "localhost", wire, &held).await {
                    Ok(stream) => listen(stream, random).await,
                    Err(error) => (None, Err(error)),
                }
            }
        };
        tokio::time::timeout(HANGS_AFTER, hearing).await.expect("a stream hangs")
    });
    Heard { has_shaken_hands: plain.is_some(), plain: plain.unwrap_or_default(), end, said: log.take() }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime without I/O")
}

/// Reads to the end and sometimes writes, like a driver.
async fn listen(
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
    let input = |session: &Session| [&[session.head, 0], &session.said[..]].concat();
    let again = |session: &Session| [&[session.head, 40], &session.said[..]].concat();
    sessions().iter().flat_map(|session| [input(session), again(session)]).collect()
}

/// Sizes of the writes of recorded sessions, one list per session.
const WRITES: [&[usize]; 3] = [&[24, 9, 300], &[1; 100], &[9000, 1, 2000]];

fn sessions() -> &'static [Session] {
    static RECORDED: OnceLock<Vec<Session>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let heads = [0, FROM_SERVER, OF_TLS12, FROM_SERVER | OF_TLS12];
        let plans = heads.iter().flat_map(|head| WRITES.map(|writes| (*head, writes)));
        (1..).zip(plans).map(|(number, (head, writes))| record(head, writes, number)).collect()
    })
}

/// Records a connection that sends the pattern of `number`; the other end uses the receiver's seed.
fn record(head: u8, writes: &[usize], number: u64) -> Session {
    let plain = pattern::stretch(number, 0, writes.iter().sum()).to_vec();
    let log = wire::Log::default();
    let is_server = head & FROM_SERVER != 0;
    let speaker = if is_server { Side::Server } else { Side::Client };
    seed(Side::Client, HEARER_SEED);
    seed(Side::Server, HEARER_SEED);
    seed(speaker, number);
    let (near, far) = duplex(1 << 20);
    let tee = |end, side| Tee::new(end, (side == speaker).then(|| log.clone()));
    let (near, far) = (tee(near, Side::Client), tee(far, Side::Server));
    let (version, held) = (version_of(head), Arc::new(AtomicUsize::new(0)));
    runtime().block_on(async {
        let calling = async {
            let stream = client_stream(client(version), "localhost", near, &held).await.expect("a server");
            take_part(stream, if is_server { None } else { Some((&plain, writes)) }).await;
        };
        let serving = async {
            let stream = server_stream(server(version), far, &held).await.expect("a client");
            take_part(stream, if is_server { Some((&plain, writes)) } else { None }).await;
        };
        tokio::join!(calling, serving);
    });
    Session { head, said: log.take(), plain }
}

async fn take_part(mut stream: impl AsyncRead + AsyncWrite + Unpin, says: Option<(&[u8], &[usize])>) {
    if let Some((mut plain, writes)) = says {
        for len in writes {
            let (part, rest) = plain.split_at(*len);
            stream.write_all(part).await.expect("the other end reads");
            plain = rest;
        }
    }
    stream.shutdown().await.expect("pipes don't fail");
    stream.read_to_end(&mut Vec::new()).await.expect("the other end closes, too");
}

fn version_of(head: u8) -> &'static SupportedProtocolVersion {
    if head & OF_TLS12 == 0 { &version::TLS13 } else { &version::TLS12 }
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
    static MADE: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    MADE.get_or_init(|| {
        // PKCS #8 of Ed25519 (RFC 8410 §7), before the 32 bytes of the key.
        let head = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
        let der = [&head[..], &[7; 32]].concat();
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&der.clone().into(), &PKCS_ED25519).expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        (params.self_signed(&key).expect("a certificate").der().clone(), der)
    })
}
